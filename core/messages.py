"""Everything that Plumbline can say in a chat. Each platform has one render function for each of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.answering.answer import Answer
from core.curated import CuratedAnswer
from core.incident import Incident


@dataclass(frozen=True, slots=True)
class AnswerMessage:
    """The reply to a question, with its feedback buttons."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class IncidentMessage:
    """The one message of an incident, edited in place as the work goes on."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class IncidentDetails:
    """The reply in the incident's thread: evidence, similar incidents, timeline, what would disprove the cause."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """Asks what is right instead of an answer, with a field to type it into. `prediction_id` is the answer's."""

    prediction_id: str


@dataclass(frozen=True, slots=True)
class ProposalMessage:
    """What somebody said is right, with a button to confirm it; once confirmed, by whom and until when."""

    answer: CuratedAnswer


class NoticeKind(StrEnum):
    INFORMATION = "information"
    THANKS = "thanks"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """A short plain message: help, thanks for feedback, or an error with a reference that the log holds too."""

    text: str
    kind: NoticeKind = NoticeKind.INFORMATION
    reference: str = ""


Message = AnswerMessage | IncidentMessage | IncidentDetails | CorrectionRequest | ProposalMessage | Notice

ASK_WHAT_IS_RIGHT = (
    "What is right? Type it below, or reply to me in this thread with “correct:” and the right answer. "
    "Once it is confirmed, I answer with it."
)
PROPOSED = "Proposed as the answer to:"
TENTATIVE = "I am not certain: other documents come about as close. The nearest that I have:"
CONFLICTING = "Another source says otherwise. Newest first:"
ASK = "Ask:"  # before the teams that may know


class Verdict(StrEnum):
    """The buttons. The value is what travels in the button's payload."""

    HELPFUL = "helpful"
    WRONG = "wrong"
    ASK_A_PERSON = "ask-a-person"
    OWNER_RIGHT = "owner-right"
    OWNER_WRONG = "owner-wrong"
    CAUSE_RIGHT = "cause-right"
    CAUSE_WRONG = "cause-wrong"
    TAKE_IT = "take-it"
    CORRECTION = "correction"
    CONFIRM = "confirm"


VERDICT_LABELS = {
    Verdict.HELPFUL: "Helpful",
    Verdict.WRONG: "Wrong",
    Verdict.ASK_A_PERSON: "Ask a person",
    Verdict.OWNER_RIGHT: "Right owner",
    Verdict.OWNER_WRONG: "Wrong owner",
    Verdict.CAUSE_RIGHT: "Right cause",
    Verdict.CAUSE_WRONG: "Wrong cause",
    Verdict.TAKE_IT: "Take it",
    Verdict.CORRECTION: "Send",
    Verdict.CONFIRM: "Confirm",
}

# What a judging button says about the prediction that it stands under; the other buttons judge nothing.
CORRECT = {
    Verdict.HELPFUL: True,
    Verdict.WRONG: False,
    Verdict.OWNER_RIGHT: True,
    Verdict.OWNER_WRONG: False,
    Verdict.CAUSE_RIGHT: True,
    Verdict.CAUSE_WRONG: False,
}
