"""Rendering of messages as Adaptive Cards: one function for each message of `core.model.messages`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from adapters.teams.answers import answer_card, footer_card, spoken
from adapters.teams.confidence import alarm_card, alarm_picture, badge_card
from adapters.teams.corrections import correction_card, proposal_card
from adapters.teams.elements import ROOMS, Card, Element, Room, card, fitting, line, listing, note, prose, run
from adapters.teams.handovers import handover_card, join_card
from adapters.teams.incidents import details_card, incident_card
from adapters.teams.owner_calls import call_card
from core.model.messages import (
    AnswerMessage,
    BadgeMessage,
    CorrectionRequest,
    DriftAlarm,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    JoinRequest,
    Message,
    Notice,
    NoticeKind,
    OwnerPing,
    OwnerQuestion,
    ProposalMessage,
)

NOTICE_SIGNS = {NoticeKind.INFORMATION: "", NoticeKind.THANKS: "✓ ", NoticeKind.PROGRESS: "◐ ", NoticeKind.ERROR: "⚠ "}


def streamed(message: Message) -> tuple[str, Card]:
    """Return a message as the end of a stream: the text, and the card below it."""
    match message:
        case AnswerMessage(answer) if not answer.abstained:
            return spoken(answer), fitting(lambda room: footer_card(answer, room))
        case _:
            shown = render(message)
            return shown.summary, shown


def render(message: Message, rooms: Sequence[Room] = ROOMS) -> Card:
    """Return the card of a message within the size limit of Teams. What does not fit is counted or ends in “…”.

    With fewer `rooms`, it is smaller still, for a message that was refused for its size.
    """
    fit = partial(fitting, rooms=rooms)
    match message:
        case AnswerMessage(answer):
            return fit(lambda room: answer_card(answer, room))
        case IncidentMessage():
            return fit(lambda room: incident_card(message, room))
        case IncidentDetails(incident):
            return fit(lambda room: details_card(incident, room))
        case CorrectionRequest():
            return correction_card(message)
        case HandoverRequest():
            return fit(lambda room: handover_card(message, room))
        case JoinRequest():
            return fit(lambda room: join_card(message, room))
        case ProposalMessage(answer):
            return fit(lambda room: proposal_card(answer, room))
        case BadgeMessage(explanation):
            return fit(lambda room: badge_card(explanation, room))
        case OwnerPing() | OwnerQuestion():
            return call_card(message)
        case DriftAlarm():
            picture = alarm_picture(message)
            return fit(lambda room: alarm_card(message, picture if room is ROOMS[0] else b""))
        case Notice():
            return fit(lambda room: _notice_card(message, room))


def _notice_card(notice: Notice, room: Room) -> Card:
    sign = NOTICE_SIGNS[notice.kind]
    lines = [text for text in f"{sign}{notice.text}".splitlines() if text.strip()]
    reference = note(f"Reference: {notice.reference}", 100) if notice.reference else []
    return card([*listing(lines, room, "lines", lambda text: _line(text, room)), *reference], (), notice.text)


def _line(text: str, room: Room) -> list[Element]:
    return line(prose(text, room.characters)) or line([run(text, room.characters)])
