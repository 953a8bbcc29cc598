"""The explanation of a badge, shown for “Why?”."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.confidence.calibrator import MIN_OUTCOMES, MODERATE_SCORE, STRONG_SCORE
from core.confidence.measures import BINS
from core.model.badge import Badge, BadgeExplanation, BadgeReference, Strength
from core.model.prediction import Outcome, Prediction, PredictionKind

SUPPORTS = {
    Strength.STRONG: "What I found clearly supports this {kind}",
    Strength.MODERATE: "What I found partly supports this {kind}",
    Strength.WEAK: "What I found barely supports this {kind}",
}
DECIDES = {
    Strength.STRONG: "and there was enough to decide it.",
    Strength.MODERATE: "but there was not enough to decide it.",
    Strength.WEAK: "but there was hardly anything to decide it by.",
}
CHANGES = {
    PredictionKind.ANSWER: "a newer or clearer document, or somebody who presses “Wrong” and gives the right answer",
    PredictionKind.OWNER: "a cause in another team’s service, or a team that says it isn’t theirs",
    PredictionKind.CAUSE: "the same symptoms before the supposed cause, or no improvement after it is undone",
    PredictionKind.SEVERITY: "somebody who sets the severity",
    PredictionKind.PAGE: "people who take it, or an alert that ends by itself",
    PredictionKind.DUPLICATE: "somebody who says it isn’t a duplicate",
}
"""The information that would change a claim, by its kind."""
STRONG_MEANS = "“Strong” is said where nine in ten such claims were right in tests on data that they were not made for."


def explained(
    prediction: Prediction,
    badge: Badge,
    labelled: Sequence[tuple[Prediction, Outcome]],
    references: tuple[BadgeReference, ...],
    evidence: tuple[str, ...] = (),
    changes: str = "",
) -> BadgeExplanation:
    """Return the explanation: the evidence, how often such claims were right, and what would change this one.

    `labelled` are the judged claims of the same estimator, `references` those of the prediction's that its reader may
    see. `evidence` are lines for the claim, and `changes` is what would change it, empty for the default of its kind;
    both are untrusted.
    """
    kind, evaluation = prediction.kind, prediction.evaluation
    supports = SUPPORTS[_strength(evaluation.rce)].format(kind=kind)
    versions = f"measured by {prediction.engine} {prediction.estimator_version}"
    if prediction.calibrator_version:
        versions += f", calibrated by {prediction.calibrator_version}"
    return BadgeExplanation(
        kind=kind,
        badge=badge,
        sentences=(
            f"{supports}, {DECIDES[_strength(evaluation.coe)]}",
            *([STRONG_MEANS] if badge.probability is None and badge.strength is Strength.STRONG else []),
            *evidence,
            _track_record(kind, badge, labelled),
            f"What would change it: {(changes or CHANGES[kind]).rstrip('.')}.",
        ),
        references=references,
        hidden=len(prediction.references) - len(references),
        for_experts=f"COE {evaluation.coe:.2f}, RCE {evaluation.rce:.2f} (0 to 1); {versions}. {badge.explanation}",
    )


def _track_record(kind: PredictionKind, badge: Badge, labelled: Sequence[tuple[Prediction, Outcome]]) -> str:
    """Return how often claims with about the same percentage were right, or all claims if there are none."""
    if badge.probability is not None:
        bin_of = _bin(badge.probability)
        same = [
            outcome.correct
            for each, outcome in labelled
            if each.probability is not None and _bin(each.probability) == bin_of
        ]
        if same:
            shown = f"{100 * bin_of / BINS:.0f}–{100 * (bin_of + 1) / BINS:.0f} %"
            return f"Of {_claims(kind, len(same))} shown at {shown} and judged since, {sum(same)} turned out right."
    if not labelled:
        return f"Nobody has judged such a claim yet. A percentage needs {MIN_OUTCOMES} judgements."
    right = sum(outcome.correct for _, outcome in labelled)
    few = f"; a percentage needs {MIN_OUTCOMES}" if badge.probability is None else ""
    return f"Of {_claims(kind, len(labelled))} judged so far, {right} turned out right{few}."


def _claims(kind: PredictionKind, count: int) -> str:
    return f"{count} {kind} that was" if count == 1 else f"{count} {kind.plural} that were"


def _bin(probability: float) -> int:
    """Return the bin of the reliability diagram; a bin includes its upper edge, and the first one 0 as well."""
    return max(0, math.ceil(round(probability * BINS, 9)) - 1)


def _strength(measure: float) -> Strength:
    if measure >= STRONG_SCORE:
        return Strength.STRONG
    return Strength.MODERATE if measure >= MODERATE_SCORE else Strength.WEAK
