"""Predictions: the bot's claims, with the data behind their badges, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.model.conversation import PersonName, Place


class PredictionKind(StrEnum):
    ANSWER = "answer"
    OWNER = "owner"
    CAUSE = "cause"
    SEVERITY = "severity"
    DUPLICATE = "duplicate"
    PAGE = "page"  # that an incident needs a person

    @property
    def plural(self) -> str:
        return "severities" if self is PredictionKind.SEVERITY else f"{self}s"


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
