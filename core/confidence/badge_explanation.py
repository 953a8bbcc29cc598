"""The explanation of a badge, shown for “Why this number?”."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from core.confidence.calibrator import MIN_OUTCOMES, MODERATE_SCORE, STRONG_SCORE
from core.confidence.measures import BINS
from core.model.badge import Badge, Strength
from core.model.prediction import Evaluation, PredictionKind

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
"""The kinds of information that would change a claim, by its kind."""


@dataclass(frozen=True, slots=True)
class BadgeReference:
    """A document or past incident that a claim was judged by, as its reader may see it. Untrusted text."""

    title: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Of the `judged` predictions that were shown at more than `above` and at most `up_to`, `right` turned out right.

    The bounds are those of the reliability diagram's bin, in [0, 1].
    """

    above: float
    up_to: float
    judged: int
    right: int


@dataclass(frozen=True, slots=True)
class BadgeExplanation:
    """The basis of a badge.

    - `hidden`: the number of references that the reader may not see, or that no longer exist.
    - `evidence`: lines of evidence for the claim; untrusted.
    - `changes`: what would change the claim, empty for the default of its kind; untrusted.
    - `judged`, `right`: how many claims by the same estimator people judged, and how many of those were right.
    - `record`: the outcomes of badges with about the same percentage; None without a percentage or outcomes.
    """

    kind: PredictionKind
    badge: Badge
    evaluation: Evaluation
    references: tuple[BadgeReference, ...]
    hidden: int
    record: TrackRecord | None
    estimator: str  # engine and version that measured the evidence
    calibrator: str = ""  # version, empty if the badge was not calibrated
    evidence: tuple[str, ...] = ()
    changes: str = ""
    judged: int = 0
    right: int = 0

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what the evidence is, how often such claims were right, and what would change it."""
        supports = SUPPORTS[_strength(self.evaluation.rce)].format(kind=self.kind)
        found = f"{supports}, {DECIDES[_strength(self.evaluation.coe)]}"
        changes = f"What would change it: {(self.changes or CHANGES[self.kind]).rstrip('.')}."
        return (found, *self.evidence, self._often, changes)

    @property
    def for_experts(self) -> str:
        """Return the measures and versions behind the badge."""
        measures = f"COE {self.evaluation.coe:.2f}, RCE {self.evaluation.rce:.2f}, both of 1"
        versions = f"measured by {self.estimator}" + (f", calibrated by {self.calibrator}" if self.calibrator else "")
        return f"{measures}; {versions}. {self.badge.explanation}"

    @property
    def _often(self) -> str:
        if self.record is not None:
            return _format_record(self.record, self.kind)
        if not self.judged:
            return f"Nobody has judged such a claim yet. A percentage needs {MIN_OUTCOMES} judgements."
        one = self.judged == 1
        judged = f"{self.judged} {self.kind} that was" if one else f"{self.judged} {self.kind.plural} that were"
        few = f"; a percentage needs {MIN_OUTCOMES}" if self.badge.probability is None else ""
        return f"Of {judged} judged so far, {self.right} turned out right{few}."

    @property
    def withheld(self) -> str:
        """Return a sentence about the references that are not shown; empty if all are shown."""
        return f"{self.hidden} more that cannot be shown here" if self.hidden else ""


def track_record(probability: float, judged: Iterable[tuple[float, bool]]) -> TrackRecord | None:
    """The bin that `probability` falls into, of pairs of what was shown and whether it was right; None if it is empty."""
    bin_of = _bin(probability)
    outcomes = [correct for shown, correct in judged if _bin(shown) == bin_of]
    if not outcomes:
        return None
    return TrackRecord(bin_of / BINS, (bin_of + 1) / BINS, len(outcomes), sum(outcomes))


def _bin(probability: float) -> int:
    return max(0, math.ceil(round(probability * BINS, 9)) - 1)


def _strength(measure: float) -> Strength:
    return (
        Strength.STRONG
        if measure >= STRONG_SCORE
        else Strength.MODERATE
        if measure >= MODERATE_SCORE
        else Strength.WEAK
    )


def _format_record(record: TrackRecord, kind: PredictionKind) -> str:
    noun = f"{kind} that was" if record.judged == 1 else f"{kind.plural} that were"
    shown = f"{100 * record.above:.0f}–{100 * record.up_to:.0f} %"
    return f"Of {record.judged} {noun} shown at {shown} and judged since, {record.right} turned out right."
