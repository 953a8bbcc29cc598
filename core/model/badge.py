"""Predictions, which are the bot's claims with the data behind their badges, and the badges themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import exp
from typing import TYPE_CHECKING, overload

from core.model.conversation import PersonName, Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


class Strength(StrEnum):
    """The strength of the evidence, shown in a word while there are too few outcomes for a percentage.

    It is strong only in a kind of claim of which at least nine in ten such were right on data that it was not made on.
    """

    STRONG = "strong"
    MODERATE = "moderate"
    WEAK = "weak"


SURE = 0.9
"""Probability from which a claim is stated without a word of doubt."""

WORDS = {Strength.STRONG: "strong", Strength.MODERATE: "", Strength.WEAK: "unsure"}
"""The word for an uncalibrated claim, by the strength of its evidence. The usual strength needs none."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A badge.

    `probability` is calibrated and in [0, 1]; None while there are too few labelled outcomes. `outcomes` is the number
    of labelled outcomes behind it, `fitted_at` the time of the calibration.
    """

    strength: Strength
    probability: float | None = None
    outcomes: int = 0
    fitted_at: datetime | None = None

    @property
    def is_sure(self) -> bool:
        """Return whether a claim is stated without a word of doubt, because nine in ten such claims are right."""
        return self.strength is Strength.STRONG if self.probability is None else self.probability >= SURE

    @property
    def text(self) -> str:
        """Return the badge as shown in every chat: “●●● 86 %”, or a word, which may be empty, if there is no percentage."""
        if self.probability is None:
            return WORDS[self.strength]
        percentage = round(100 * self.probability)
        filled = 1 + (percentage >= 50) + (percentage >= 80)
        return f"{'●' * filled}{'○' * (3 - filled)} {percentage} %"

    @property
    def explanation(self) -> str:
        """Return the basis of the number in one sentence."""
        if self.probability is None:
            judged = "1 such claim was" if self.outcomes == 1 else f"{self.outcomes or 'no'} such claims were"
            return f"Not calibrated: {judged} judged so far, too few for a percentage."
        fitted = f", fitted {self.fitted_at:%Y-%m-%d}" if self.fitted_at else ""
        return f"Calibrated on {self.outcomes} claims that people judged{fitted}."


@dataclass(frozen=True, slots=True)
class BadgeReference:
    """A document or past incident that a claim was judged by, as its reader may see it. Untrusted text."""

    title: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class BadgeExplanation:
    """The basis of a badge, as it is shown.

    `hidden` is the number of references that the reader may not see, or that no longer exist. `for_experts` names the
    measures and versions behind the badge. Of `sentences`, those about the evidence are untrusted text.
    """

    kind: PredictionKind
    badge: Badge
    references: tuple[BadgeReference, ...]
    hidden: int
    sentences: tuple[str, ...]
    for_experts: str

    @property
    def withheld(self) -> str:
        """Return a sentence about the references that are not shown; empty if all are shown."""
        return f"{self.hidden} more that cannot be shown here" if self.hidden else ""


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds as probabilities in [0, 1]; None means never. Uncalibrated badges have no effect.

    Below `ask_below`, an owner or a cause is shown as a question; above `ping_owner_above`, the owner is pinged. With
    `ping_two_when_unsure`, the two candidate teams are pinged if no owner can be named.
    """

    ask_below: float | None = None
    ping_owner_above: float | None = None
    ping_two_when_unsure: bool = False

    def asks(self, badge: Badge | None) -> bool:
        probability = badge.probability if badge else None
        return self.ask_below is not None and probability is not None and probability < self.ask_below

    def pings(self, badge: Badge | None) -> bool:
        probability = badge.probability if badge else None
        return self.ping_owner_above is not None and probability is not None and probability > self.ping_owner_above


NO_POLICY = Policy()


@dataclass(frozen=True, slots=True)
class Holding:
    """The channels and limits for holding back an incident that almost certainly needs no person. Off by default.

    `below` is the largest calibrated probability of needing a person, None for never; `length` the time after which the
    incident is posted anyway, unless it has ended; `channels` are the names of the channels in which this is allowed.
    """

    below: float | None = None
    length: timedelta = timedelta(minutes=10)
    channels: frozenset[str] = frozenset()


NO_HOLDING = Holding()


NO_SURER = 1e-4  # distance of clipped probabilities from 0 and 1


@dataclass(frozen=True, slots=True)
class Transformation:
    """A score from both measures: the less the references can decide (COE), the nearer the score is to the anchor.

    `weight` ≥ 0 is how much COE counts (0: not at all); `anchor` in [0, 1] is the score of an undecidable claim.
    """

    weight: float = 1.0
    anchor: float = 0.0

    @overload
    def score(self, coe: float, rce: float) -> float: ...

    @overload
    def score(self, coe: FloatArray, rce: FloatArray) -> FloatArray: ...

    def score(self, coe: float | FloatArray, rce: float | FloatArray) -> float | FloatArray:
        """Return a score in [0, 1], never lower for a higher RCE. Arrays are taken element by element."""
        return self.anchor + coe**self.weight * (rce - self.anchor)


RCE_ALONE = Transformation(weight=0.0)


@dataclass(frozen=True, slots=True)
class Steps:
    """A step function of one score: `probabilities[i]` applies up to and including `upper[i]`.

    Both ascend; the last upper bound is 1.0. `transformation` computes the score from the two measures.
    """

    upper: tuple[float, ...]
    probabilities: tuple[float, ...]
    transformation: Transformation = RCE_ALONE
    weight: float = 1.0

    def probability(self, evaluation: Evaluation) -> float:
        score = self.transformation.score(evaluation.coe, evaluation.rce)
        return self.probabilities[bisect_left(self.upper, min(score, 1.0))]


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A weighted mean of step functions, with weights that sum to 1. It never decreases with the RCE.

    `offsets` maps a group to its deviation in log-odds from the pooled probability; other groups do not deviate.
    """

    version: str
    steps: tuple[Steps, ...]
    outcomes: int
    fitted_at: datetime
    offsets: Mapping[str, float] = field(default_factory=dict[str, float])

    def probability(self, evaluation: Evaluation, group: str = "") -> float:
        """Return a probability in [0, 1]."""
        pooled = sum(steps.weight * steps.probability(evaluation) for steps in self.steps)
        return shifted(pooled, self.offsets.get(group, 0.0))


def shifted(probability: float, offset: float) -> float:
    """Return the probability with its log-odds increased by `offset`; unchanged for an offset of 0."""
    if not offset:
        return probability
    inside = min(max(probability, NO_SURER), 1 - NO_SURER)
    return 1 / (1 + (1 - inside) / inside * exp(-offset))


class PredictionKind(StrEnum):
    ANSWER = "answer"
    OWNER = "owner"
    CAUSE = "cause"
    PAGE = "page"  # that an incident needs a person

    @property
    def plural(self) -> str:
        return f"{self}s"


@dataclass(frozen=True, slots=True, order=True)
class Estimator:
    """The origin of a prediction's measures. Only predictions of the same estimator share a calibrator.

    `engine` is `evidence` or the language model's name; `version` is that of its formulas or prompts.
    """

    kind: PredictionKind
    engine: str
    version: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The two raw measures of LM-PACE, both in [0, 1].

    `coe`, confidence of evaluation: how far the references can decide at all. `rce`, root-cause evaluation: how far
    they support this prediction.
    """

    coe: float
    rce: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A claim, stored so that its badge can be recomputed and audited.

    `subject` is the id of the question or incident, `value` the claim (a team id, a cause, an answer's text).
    `probability` is what was shown, None if the badge was not calibrated. `group` is the team or source that it is
    about, may be empty. `references` are the ids of the documents or incidents that it was judged by.
    """

    id: str
    kind: PredictionKind
    subject: str
    value: str
    evaluation: Evaluation
    engine: str
    estimator_version: str
    made_at: datetime
    calibrator_version: str | None = None
    probability: float | None = None
    group: str = ""
    references: tuple[str, ...] = ()

    @property
    def estimator(self) -> Estimator:
        return Estimator(self.kind, self.engine, self.estimator_version)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A label of a prediction. A later label by the same person replaces an earlier one."""

    prediction_id: str
    correct: bool
    labelled_by: str
    labelled_at: datetime
    comment: str = ""


# The probability that was shown for a judged prediction, None without a percentage, and whether it was right.
Verdict = tuple[float | None, bool]


@dataclass(frozen=True, slots=True)
class Drift:
    """The drift of badges: `error` is their expected calibration error, `limit` the largest that chance would explain.

    `promised` is the mean probability shown, `kept` the share that turned out right.
    """

    error: float
    limit: float
    promised: float
    kept: float
    outcomes: int

    @property
    def alarming(self) -> bool:
        return self.error > self.limit


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """The lines of a build log that were shown or named as its failure.

    `id` is the prediction's id, `place` where the question was asked; None for a posted incident.

    `log` is redacted; `first` and `last` are line numbers in it, from 0, both inclusive. `confirmed_by` is empty until
    a person confirms the lines.
    """

    id: str
    project: str
    log: str
    first: int
    last: int
    found_at: datetime
    place: Place | None = None
    confirmed_by: PersonName = ""

    @property
    def lines(self) -> range:
        return range(self.first, self.last + 1)
