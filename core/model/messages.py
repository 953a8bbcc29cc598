"""All messages that the bot posts. `core.views` says what each shows and offers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.model.alert import Severity
from core.model.answer import Answer
from core.model.badge import Badge, BadgeExplanation, Drift, Estimator, PredictionKind
from core.model.conversation import NameFirst, Person, Place
from core.model.document import CuratedAnswer
from core.model.findings import AskedTeam
from core.model.incident import FilingKind, Incident


@dataclass(frozen=True, slots=True)
class AnswerMessage:
    """The reply to a question, with its feedback buttons."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class RelatedIncident:
    """An incident as named in another one's message. `url` links to its own message, empty if unknown or if it has none."""

    incident_id: str
    title: str
    alert_count: int
    is_open: bool
    url: str = ""
    service: str = ""
    severity: Severity = Severity.WARNING


@dataclass(frozen=True, slots=True)
class IncidentMessage:
    """The message of an incident, edited in place.

    `asks_owner` and `asks_cause`: the finding is phrased as a question, because the badge is low (see `Policy`).
    `leader` is the parent that it was merged into, `parts` are the incidents merged into it, oldest first. `filing` are
    the buttons to file something that are allowed here. `last` is the incident of the same alert before this one, and
    `note` its cause and fix, which may be empty. In its `old_thread`, it is a reply that the whole channel is to see.
    """

    incident: Incident
    asks_owner: bool = False
    asks_cause: bool = False
    leader: RelatedIncident | None = None
    parts: tuple[RelatedIncident, ...] = ()
    filing: tuple[ButtonAction, ...] = ()
    last: RelatedIncident | None = None
    note: str = ""
    old_thread: Place | None = None


@dataclass(frozen=True, slots=True)
class IncidentDetails:
    """The reply in the incident's thread: evidence, similar incidents, timeline, and what would disprove the cause."""

    incident: Incident


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """A request for the right answer, with a text field. `prediction_id` is that of the disputed answer."""

    prediction_id: str


@dataclass(frozen=True, slots=True)
class CauseRequest:
    """A request for the right cause, with a text field. `prediction_id` is that of the disputed cause."""

    prediction_id: str


@dataclass(frozen=True, slots=True)
class HandoverRequest:
    """A request for the right owner, with a picker of `teams` (ids and names) and a field for the reason.

    `owner` is the name of the current owner, empty if there is none; `claim` is the id of its prediction.
    """

    incident_id: str
    owner: str
    teams: tuple[tuple[str, str], ...]
    claim: str = ""

    @property
    def subject(self) -> str:
        """Return the claim's id, so that a late answer does not apply to a later claim; otherwise the incident's id."""
        return self.claim or self.incident_id


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """A request to merge an incident, with a picker of `incidents` (ids and titles, at least one)."""

    incident_id: str
    incidents: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FilingRequest:
    """A draft in Markdown to be edited and sent, with a picker of `targets` (names, at least one, the first one picked)."""

    incident_id: str
    kind: FilingKind
    title: str
    text: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProposalMessage:
    """A proposed answer with a button to confirm it; after that, who confirmed it and until when it is valid."""

    answer: CuratedAnswer


@dataclass(frozen=True, slots=True)
class BadgeMessage:
    """The explanation of a badge, shown for “Why?”."""

    explanation: BadgeExplanation


@dataclass(frozen=True, slots=True)
class OwnerPing:
    """A ping of the probable owner of an incident. `mention` is the team's id on the platform.

    `mention` is empty if plumbline.yaml has none; the team is then named in plain text. It never addresses a whole
    channel. `prediction_id` is that of the claim, empty if it is not stored. `on_call` are the team's on-call people.
    """

    team_name: str
    mention: str
    badge: Badge
    prediction_id: str = ""
    on_call: tuple[NameFirst, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerQuestion:
    """A ping of the candidate teams (at least one) if no owner can be named.

    Each team comes with its mention, as in `OwnerPing`. The message claims nothing.
    """

    teams: tuple[tuple[AskedTeam, str], ...]


@dataclass(frozen=True, slots=True)
class DriftAlarm:
    """An alarm for operators: an estimator's badges are no longer calibrated, with a table of how many were right.

    `shown` are the probabilities of its latest judged badges, `correct` their outcomes, oldest first.
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
    """A short plain message: help, thanks for feedback, progress, or an error with a reference to the log.

    `text` is not Markdown, because it may quote logs, changes and people. `steps` are those that were done before it, the
    step in progress. `stop_id` is as in `Answer`. `links` has for each line of the text the address of its page, if there
    is one; it may be shorter than the text. `choices` are its buttons, each with its subject. `times` are those that the
    text names in UTC. `only_for` is the person who alone sees it, where the chat can do that.
    """

    text: str
    kind: NoticeKind = NoticeKind.INFORMATION
    reference: str = ""
    steps: tuple[str, ...] = ()
    stop_id: str = ""
    links: tuple[str, ...] = ()
    choices: tuple[tuple[ButtonAction, str], ...] = ()
    times: tuple[datetime, ...] = ()
    only_for: Person | None = None

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return the lines of the text, each with the address of its page; empty for none."""
        # A text has no more lines than characters.
        return tuple(zip(self.text.splitlines(), (*self.links, *[""] * len(self.text)), strict=False))


Message = (
    AnswerMessage
    | IncidentMessage
    | IncidentDetails
    | CorrectionRequest
    | HandoverRequest
    | JoinRequest
    | FilingRequest
    | ProposalMessage
    | BadgeMessage
    | OwnerPing
    | OwnerQuestion
    | DriftAlarm
    | Notice
)


def is_lifted(message: Message, place: Place) -> bool:
    """Return whether a message in a thread is to be seen in the channel too: it is an incident in its alert's old thread."""
    return isinstance(message, IncidentMessage) and message.old_thread == place


# Forms that a platform may open.
Form = CorrectionRequest | HandoverRequest | CauseRequest | FilingRequest | IncidentDetails


def claim(message: Message) -> str:
    """Return the id of the one prediction that a message claims; empty if it claims none or several."""
    match message:
        case AnswerMessage(answer):
            return answer.prediction_id or ""
        case IncidentDetails(incident):
            return (
                (incident.findings.explanation.prediction_id or "") if incident.findings.explanation is not None else ""
            )
        case OwnerPing():
            return message.prediction_id
        case _:
            return ""


SEND = "Send"
WHY = "Why?"
ON_CALL = "On call"
ON_CALL_UNKNOWN = "unknown, {name} did not answer"  # who is on call
IS_IT_YOURS = "Is this yours, {team}?"
OR = " or "  # between the teams that are asked
COULD_IT_BE = "Could it be this? {cause}"


class ButtonAction(StrEnum):
    """The buttons. The value is part of the button's payload."""

    HELPFUL = "helpful"
    WRONG = "wrong"
    FIRST_ANSWERS = "first-answers"
    SECOND_ANSWERS = "second-answers"
    THIRD_ANSWERS = "third-answers"
    ASK_A_PERSON = "ask-a-person"
    STOP = "stop"
    OWNER_RIGHT = "owner-right"
    OWNER_WRONG = "owner-wrong"
    CAUSE_RIGHT = "cause-right"
    CAUSE_WRONG = "cause-wrong"
    OTHER_CAUSE_RIGHT = "other-cause-right"
    OTHER_CAUSE_WRONG = "other-cause-wrong"
    TAKE_IT = "take-it"
    TAKE_OVER = "take-over"
    HAND_OVER = "hand-over"
    REASSIGN = "reassign"
    NOT_OURS = "not-ours"
    SEPARATE = "separate"
    BELONGS = "belongs"
    JOIN = "join"
    JOIN_SUGGESTED = "join-suggested"
    ADOPT = "adopt"
    ADOPT_NOTHING = "adopt-nothing"
    IS_ALERT = "is-alert"
    IS_NO_ALERT = "is-no-alert"
    DETAILS = "details"
    CREATE_ISSUE = "create-issue"
    PUBLISH_POSTMORTEM = "publish-postmortem"
    FILE = "file"
    WRITE_UPDATE = "write-update"
    SEND_UPDATE = "send-update"
    CORRECTION = "correction"
    CONFIRM = "confirm"
    WHY_ANSWER = "why-answer"
    WHY_OWNER = "why-owner"
    WHY_CAUSE = "why-cause"
    WHY_OTHER_CAUSE = "why-other-cause"


BUTTON_LABELS = {
    ButtonAction.HELPFUL: "Helpful",
    ButtonAction.WRONG: "Wrong",
    ButtonAction.FIRST_ANSWERS: "1 answers it",
    ButtonAction.SECOND_ANSWERS: "2 answers it",
    ButtonAction.THIRD_ANSWERS: "3 answers it",
    ButtonAction.ASK_A_PERSON: "Ask a person",
    ButtonAction.STOP: "Stop",
    ButtonAction.OWNER_RIGHT: "Right owner",
    ButtonAction.OWNER_WRONG: "Wrong owner",
    ButtonAction.CAUSE_RIGHT: "Right cause",
    ButtonAction.CAUSE_WRONG: "Wrong cause",
    ButtonAction.OTHER_CAUSE_RIGHT: "Right second cause",
    ButtonAction.OTHER_CAUSE_WRONG: "Wrong second cause",
    ButtonAction.TAKE_IT: "Take",
    ButtonAction.TAKE_OVER: "Take over",
    ButtonAction.HAND_OVER: "Reassign…",
    ButtonAction.REASSIGN: "Reassign",
    ButtonAction.NOT_OURS: "Not ours",
    ButtonAction.SEPARATE: "Separate",
    ButtonAction.BELONGS: "Merge into…",
    ButtonAction.JOIN: "Merge",
    ButtonAction.JOIN_SUGGESTED: "Join",
    ButtonAction.ADOPT: "Adopt",
    ButtonAction.ADOPT_NOTHING: "No",
    ButtonAction.IS_ALERT: "Treat as alert",
    ButtonAction.IS_NO_ALERT: "Not an alert",
    ButtonAction.DETAILS: "Details",
    ButtonAction.CREATE_ISSUE: "Create issue…",
    ButtonAction.PUBLISH_POSTMORTEM: "Publish postmortem…",
    ButtonAction.FILE: "File it",
    ButtonAction.WRITE_UPDATE: "Stakeholder update…",
    ButtonAction.SEND_UPDATE: SEND,
    ButtonAction.CORRECTION: SEND,
    ButtonAction.CONFIRM: "Confirm",
    ButtonAction.WHY_ANSWER: WHY,
    ButtonAction.WHY_OWNER: "Why this owner?",
    ButtonAction.WHY_CAUSE: "Why this cause?",
    ButtonAction.WHY_OTHER_CAUSE: "Why the second cause?",
}


Request = CorrectionRequest | CauseRequest | HandoverRequest | JoinRequest | FilingRequest

# Buttons that assign the incident to the person who presses.
TAKING = frozenset({ButtonAction.TAKE_IT, ButtonAction.TAKE_OVER})

# Buttons about what other bots post in a channel.
ADOPTING = (
    ButtonAction.ADOPT,
    ButtonAction.ADOPT_NOTHING,
    ButtonAction.IS_ALERT,
    ButtonAction.IS_NO_ALERT,
)

# Buttons that open a draft.
FILING_ACTIONS = (ButtonAction.CREATE_ISSUE, ButtonAction.PUBLISH_POSTMORTEM, ButtonAction.WRITE_UPDATE)

# Buttons that ask for the explanation of a badge.
WHY_ACTIONS = frozenset(
    {ButtonAction.WHY_ANSWER, ButtonAction.WHY_OWNER, ButtonAction.WHY_CAUSE, ButtonAction.WHY_OTHER_CAUSE}
)

# Buttons that make one of the quotes that are offered the answer, in their order. The claim is that the first one answers.
CHOOSING = (ButtonAction.FIRST_ANSWERS, ButtonAction.SECOND_ANSWERS, ButtonAction.THIRD_ANSWERS)

# The positive and the negative button for each kind of claim.
JUDGEMENTS = {
    PredictionKind.ANSWER: (ButtonAction.HELPFUL, ButtonAction.WRONG),
    PredictionKind.OWNER: (ButtonAction.OWNER_RIGHT, ButtonAction.OWNER_WRONG),
    PredictionKind.CAUSE: (ButtonAction.CAUSE_RIGHT, ButtonAction.CAUSE_WRONG),
}

# The label that a button gives to its prediction; other buttons give none.
CORRECT = {
    button: correct for buttons in JUDGEMENTS.values() for button, correct in zip(buttons, (True, False), strict=True)
} | {
    ButtonAction.OTHER_CAUSE_RIGHT: True,
    ButtonAction.OTHER_CAUSE_WRONG: False,
    **{choice: choice is CHOOSING[0] for choice in CHOOSING},
}


@dataclass(frozen=True, slots=True)
class KnownSource:
    """The freshness of a knowledge source. `is_read` is False if the last attempt to read it failed.

    `read_at` is None while it is read for the first time.
    """

    name: str
    documents: int
    read_at: datetime | None
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Home:
    """The content of a home page.

    `mine` are the open incidents that the person took, or that their team is on call for, newest first; `others` are
    further open ones that they may see. `settings` are names and values, `can` the available commands.
    """

    mine: tuple[Incident, ...]
    others: tuple[Incident, ...]
    passages: int
    sources: tuple[KnownSource, ...]
    settings: tuple[tuple[str, str], ...]
    can: tuple[str, ...]
