"""What Plumbline says, as Adaptive Cards: one function per message of core.messages."""

from __future__ import annotations

from adapters.teams.answers import answer_card
from adapters.teams.corrections import correction_card, proposal_card
from adapters.teams.elements import Card, Element, Room, card, fitting, line, listing, note, prose, run
from adapters.teams.incidents import details_card, incident_card
from core.messages import (
    AnswerMessage,
    CorrectionRequest,
    IncidentDetails,
    IncidentMessage,
    Message,
    Notice,
    NoticeKind,
    ProposalMessage,
)

NOTICE_SIGNS = {NoticeKind.INFORMATION: "", NoticeKind.THANKS: "✓ ", NoticeKind.ERROR: "⚠ "}


def render(message: Message) -> Card:
    """The card of a message, never larger than Teams takes; what does not fit is counted or ends in “…”."""
    match message:
        case AnswerMessage(answer):
            return fitting(lambda room: answer_card(answer, room))
        case IncidentMessage(incident):
            return fitting(lambda room: incident_card(incident, room))
        case IncidentDetails(incident):
            return fitting(lambda room: details_card(incident, room))
        case CorrectionRequest():
            return correction_card(message)
        case ProposalMessage(answer):
            return fitting(lambda room: proposal_card(answer, room))
        case Notice():
            return fitting(lambda room: _notice_card(message, room))


def _notice_card(notice: Notice, room: Room) -> Card:
    sign = NOTICE_SIGNS[notice.kind]
    lines = [text for text in f"{sign}{notice.text}".splitlines() if text.strip()]
    reference = note(f"Reference: {notice.reference}", 100) if notice.reference else []
    return card([*listing(lines, room, "lines", lambda text: _line(text, room)), *reference], (), notice.text)


def _line(text: str, room: Room) -> list[Element]:
    return line(prose(text, room.characters)) or line([run(text, room.characters)])
