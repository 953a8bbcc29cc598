"""Everything that Plumbline can say in a chat. Each platform has one render function for each of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.answering.answer import Answer
from core.confidence.badge_explanation import BadgeExplanation
from core.model.badge import Badge
from core.model.curated import CuratedAnswer
from core.model.incident import AskedTeam, Incident
from core.model.prediction import Drift, Estimator, PredictionKind


@dataclass(frozen=True, slots=True)
class AnswerMessage:
    """The reply to a question, with its feedback buttons."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class RelatedIncident:
    """An incident, as another one's message names it. `url` leads to its own message, empty if none is known."""

    incident_id: str
    title: str
    alert_count: int
    is_open: bool
    url: str = ""


@dataclass(frozen=True, slots=True)
class IncidentMessage:
    """The one message of an incident, edited in place as the work goes on.

    `asks_owner` and `asks_cause`: what was found is put as a question, because the badge is low (see `Policy`).
    `leader` is the incident that it is a part of, `parts` are those that are a part of it, the first one first.
    """

    incident: Incident
    asks_owner: bool = False
    asks_cause: bool = False
    leader: RelatedIncident | None = None
    parts: tuple[RelatedIncident, ...] = ()


@dataclass(frozen=True, slots=True)
class IncidentDetails:
    """The reply in the incident's thread: evidence, similar incidents, timeline, what would disprove the cause."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """Asks what is right instead of an answer, with a field to type it into. `prediction_id` is the answer's."""

    prediction_id: str


@dataclass(frozen=True, slots=True)
class CauseRequest:
    """Asks what the cause was instead of the one that was called wrong. `prediction_id` is that claim's."""

    prediction_id: str


@dataclass(frozen=True, slots=True)
class HandoverRequest:
    """Asks whose an incident is instead, with a picker of `teams` (ids and names) and a field for the reason.

    `owner` is the name of the team that stands there now, empty if nobody's does, and `claim` the prediction that says so.
    """

    incident_id: str
    owner: str
    teams: tuple[tuple[str, str], ...]
    claim: str = ""

    @property
    def subject(self) -> str:
        """Return the id of the claim, so that a late answer does not count for the next one; else of the incident."""
        return self.claim or self.incident_id


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """Asks which incident another one belongs to, with a picker of `incidents` (ids and titles), at least one."""

    incident_id: str
    incidents: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ProposalMessage:
    """A proposed answer, with a button to confirm it; once confirmed, by whom and until when."""

    answer: CuratedAnswer


@dataclass(frozen=True, slots=True)
class BadgeMessage:
    """“Why this number?” of an answer, an owner or a cause."""

    explanation: BadgeExplanation


@dataclass(frozen=True, slots=True)
class OwnerPing:
    """Calls the team that very probably owns an incident. `mention` is the team's own id on the platform.

    Empty where plumbline.yaml names none: then the team is only named. It never addresses everybody in a channel.
    `prediction_id` is that of the claim, empty if it is none that is stored. `on_call` are those of it who are on call.
    """

    team_name: str
    mention: str
    badge: Badge
    prediction_id: str = ""
    on_call: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerQuestion:
    """Calls the teams of which one probably owns an incident, where nobody can be named. At least one team.

    Each comes with its mention, as in `OwnerPing`. It claims nothing.
    """

    teams: tuple[tuple[AskedTeam, str], ...]


@dataclass(frozen=True, slots=True)
class DriftAlarm:
    """The badges of an estimator no longer tell the truth: for the operators, with the reliability diagram.

    `shown` are the probabilities of its latest judged badges and `correct` what became of them, oldest first.
    """

    estimator: Estimator
    drift: Drift
    shown: tuple[float, ...]
    correct: tuple[bool, ...]

    @property
    def title(self) -> str:
        return f"{self.estimator.kind.plural.capitalize()}, {self.estimator.engine}"

    @property
    def text(self) -> str:
        drift = self.drift
        return (
            f"The confidence of {self.estimator.kind.plural} ({self.estimator.engine}, {self.estimator.version}) has drifted. "
            f"The last {drift.outcomes} that were judged promised {100 * drift.promised:.0f} % on average and "
            f"{100 * drift.kept:.0f} % turned out right; they are off by {100 * drift.error:.1f} %, "
            f"and chance explains at most {100 * drift.limit:.1f} %."
        )


class NoticeKind(StrEnum):
    INFORMATION = "information"
    THANKS = "thanks"
    PROGRESS = "progress"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """A short plain message: help, thanks for feedback, or an error with a reference that the log holds too."""

    text: str
    kind: NoticeKind = NoticeKind.INFORMATION
    reference: str = ""


Message = (
    AnswerMessage
    | IncidentMessage
    | IncidentDetails
    | CorrectionRequest
    | HandoverRequest
    | JoinRequest
    | ProposalMessage
    | BadgeMessage
    | OwnerPing
    | OwnerQuestion
    | DriftAlarm
    | Notice
)

Form = (
    CorrectionRequest | HandoverRequest | CauseRequest | IncidentDetails
)  # what a platform may ask in a form of its own


def claim(message: Message) -> str:
    """The id of the one prediction that a message claims; empty if it claims none or several."""
    match message:
        case AnswerMessage(answer):
            return answer.prediction_id or ""
        case IncidentDetails(incident):
            return (incident.explanation.prediction_id or "") if incident.explanation is not None else ""
        case OwnerPing():
            return message.prediction_id
        case _:
            return ""


ASK_WHAT_IS_RIGHT = (
    "What is the right answer? Type it below, or reply in this thread with “correct:” and the right answer. "
    "Once somebody confirms it, I answer with it."
)
WHOSE_IS_IT = "Who should own this incident? Pick the team, or say only why it isn’t yours, and I’ll keep looking."
PICK_TEAM = "Team"
WHY_NOT_OURS = "Why (I learn from it)"
WHICH_INCIDENT = "Which incident should this one be merged into? That incident’s message will list this one."
PICK_INCIDENT = "Incident"
WHAT_WAS_IT = "What was the cause? I keep it with your judgement and learn from both."
PROPOSED = "Proposed as the answer to:"
WHY = "Why this number?"
JUDGED_BY = "Judged by:"
PING = "this is very probably yours."
ON_CALL = "On call"
ON_CALL_UNKNOWN = "unknown, {name} did not answer"  # who is on call
IS_IT_YOURS = "Is this yours, {team}?"
OR = " or "  # between the teams that are asked
NOT_CLEAR = "not clear"  # whose it is
NEAREST = "Nearest"  # teams, where none is asked
LESS_LIKELY = "Less likely"  # than those that are asked
A_PERSON_DECIDES = f"{NOT_CLEAR}, a person should decide"
I_AM_UNSURE = "I’m not sure who owns it. Press “Take” or “Reassign…” above to settle it."
COULD_IT_BE = "Could it be this? {cause}"


class Verdict(StrEnum):
    """The buttons. The value is what travels in the button's payload."""

    HELPFUL = "helpful"
    WRONG = "wrong"
    ASK_A_PERSON = "ask-a-person"
    OWNER_RIGHT = "owner-right"
    OWNER_WRONG = "owner-wrong"
    CAUSE_RIGHT = "cause-right"
    CAUSE_WRONG = "cause-wrong"
    SEVERITY_RIGHT = "severity-right"
    SEVERITY_WRONG = "severity-wrong"
    DUPLICATE_RIGHT = "duplicate-right"
    DUPLICATE_WRONG = "duplicate-wrong"
    TAKE_IT = "take-it"
    TAKE_OVER = "take-over"
    HAND_OVER = "hand-over"
    REASSIGN = "reassign"
    NOT_OURS = "not-ours"
    SEPARATE = "separate"
    BELONGS = "belongs"
    JOIN = "join"
    JOIN_SUGGESTED = "join-suggested"
    DETAILS = "details"
    CORRECTION = "correction"
    CONFIRM = "confirm"
    WHY_ANSWER = "why-answer"
    WHY_OWNER = "why-owner"
    WHY_CAUSE = "why-cause"


VERDICT_LABELS = {
    Verdict.HELPFUL: "Helpful",
    Verdict.WRONG: "Wrong",
    Verdict.ASK_A_PERSON: "Ask a person",
    Verdict.OWNER_RIGHT: "Right owner",
    Verdict.OWNER_WRONG: "Wrong owner",
    Verdict.CAUSE_RIGHT: "Right cause",
    Verdict.CAUSE_WRONG: "Wrong cause",
    Verdict.SEVERITY_RIGHT: "Right severity",
    Verdict.SEVERITY_WRONG: "Wrong severity",
    Verdict.DUPLICATE_RIGHT: "It is a duplicate",
    Verdict.DUPLICATE_WRONG: "No duplicate",
    Verdict.TAKE_IT: "Take",
    Verdict.TAKE_OVER: "Take over",
    Verdict.HAND_OVER: "Reassign…",
    Verdict.REASSIGN: "Reassign",
    Verdict.NOT_OURS: "Not ours",
    Verdict.SEPARATE: "Separate",
    Verdict.BELONGS: "Merge into…",
    Verdict.JOIN: "Merge",
    Verdict.JOIN_SUGGESTED: "Join",
    Verdict.DETAILS: "Details",
    Verdict.CORRECTION: "Send",
    Verdict.CONFIRM: "Confirm",
    Verdict.WHY_ANSWER: "Why this number?",
    Verdict.WHY_OWNER: "Owner: why this number?",
    Verdict.WHY_CAUSE: "Cause: why this number?",
}

# They name who looks after an incident.
TAKING = frozenset({Verdict.TAKE_IT, Verdict.TAKE_OVER})

# They ask what a badge rests on.
WHY_VERDICTS = frozenset({Verdict.WHY_ANSWER, Verdict.WHY_OWNER, Verdict.WHY_CAUSE})

# The buttons that say yes and no to each kind of claim.
JUDGEMENTS = {
    PredictionKind.ANSWER: (Verdict.HELPFUL, Verdict.WRONG),
    PredictionKind.OWNER: (Verdict.OWNER_RIGHT, Verdict.OWNER_WRONG),
    PredictionKind.CAUSE: (Verdict.CAUSE_RIGHT, Verdict.CAUSE_WRONG),
    PredictionKind.SEVERITY: (Verdict.SEVERITY_RIGHT, Verdict.SEVERITY_WRONG),
    PredictionKind.DUPLICATE: (Verdict.DUPLICATE_RIGHT, Verdict.DUPLICATE_WRONG),
}

# What a judging button says about the prediction that it stands under; the other buttons judge nothing.
CORRECT = {
    Verdict.HELPFUL: True,
    Verdict.WRONG: False,
    Verdict.OWNER_RIGHT: True,
    Verdict.OWNER_WRONG: False,
    Verdict.CAUSE_RIGHT: True,
    Verdict.CAUSE_WRONG: False,
    Verdict.SEVERITY_RIGHT: True,
    Verdict.SEVERITY_WRONG: False,
    Verdict.DUPLICATE_RIGHT: True,
    Verdict.DUPLICATE_WRONG: False,
}
