"""“Why this number?”: a badge taken apart into what it was made from."""

from __future__ import annotations

from dataclasses import dataclass

from core.confidence.badge import Badge, Strength
from core.confidence.calibrator import MODERATE_SCORE, STRONG_SCORE
from core.confidence.prediction import Evaluation, PredictionKind
from core.confidence.track_record import TrackRecord

DECIDES = {
    Strength.STRONG: "What I found can settle this",
    Strength.MODERATE: "What I found can settle this in part",
    Strength.WEAK: "What I found can hardly settle this",
}
SUPPORTS = {
    Strength.STRONG: "it clearly supports this {kind}",
    Strength.MODERATE: "it supports this {kind} in part",
    Strength.WEAK: "it hardly supports this {kind}",
}


@dataclass(frozen=True, slots=True)
class BadgeReference:
    """A document or past incident that a claim was judged by, as its reader may see it. Untrusted text."""

    title: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class BadgeExplanation:
    """What a badge rests on. `hidden` counts the references that its reader may not see, or that are gone.

    `record` is what became of the badges that said about the same; None without a percentage or without outcomes.
    """

    kind: PredictionKind
    badge: Badge
    evaluation: Evaluation
    references: tuple[BadgeReference, ...]
    hidden: int
    record: TrackRecord | None
    estimator: str  # engine and version of what measured the evidence
    calibrator: str = ""  # version, empty if the badge was not calibrated

    @property
    def sentences(self) -> tuple[str, ...]:
        """All but the references, in words of ours: the evidence, the outcomes, the versions."""
        decides = f"{DECIDES[_strength(self.evaluation.coe)]} (COE {self.evaluation.coe:.2f} of 1)"
        supports = SUPPORTS[_strength(self.evaluation.rce)].format(kind=self.kind)
        versions = f"Measured by {self.estimator}" + (f", calibrated by {self.calibrator}" if self.calibrator else "")
        record = (_told(self.record, self.kind),) if self.record else ()
        return (
            f"{decides}; {supports} (RCE {self.evaluation.rce:.2f} of 1).",
            self.badge.explanation,
            *record,
            f"{versions}.",
        )

    @property
    def withheld(self) -> str:
        """What to say of the references that are not shown; empty if there are none."""
        return f"{self.hidden} more that cannot be shown here" if self.hidden else ""


def _strength(measure: float) -> Strength:
    return (
        Strength.STRONG
        if measure >= STRONG_SCORE
        else Strength.MODERATE
        if measure >= MODERATE_SCORE
        else Strength.WEAK
    )


def _told(record: TrackRecord, kind: PredictionKind) -> str:
    noun = f"{kind} that was" if record.judged == 1 else f"{kind.plural} that were"
    shown = f"{100 * record.above:.0f}–{100 * record.up_to:.0f} %"
    return f"Of {record.judged} {noun} shown at {shown} and judged since, {record.right} turned out right."
