"""Rendering of messages with Block Kit: one function for each message of `core.model.messages`."""

from __future__ import annotations

from adapters.slack import blocks
from adapters.slack.answers import answer_message, badge_explanation, drift_alarm
from adapters.slack.blocks import NAME, Rendered, fallback, small_text
from adapters.slack.forms import proposal, request_message
from adapters.slack.incidents import details_message, incident_message, owner_call
from adapters.slack.mrkdwn import code, link, prose, web_address
from core.model import messages

NOTICE_ICONS = {
    messages.NoticeKind.INFORMATION: "",
    messages.NoticeKind.THANKS: "✓ ",
    messages.NoticeKind.PROGRESS: "◐ ",
    messages.NoticeKind.ERROR: "⚠️ ",
}
NOTICE_LINE = 1_000  # characters
NOTICE_TEXT = 9_000  # characters of one with links, whose addresses count
LINK = 600  # characters of the link of a line
WORKING = "Working on your question"


def render(message: messages.Message, *, newest: bool = True) -> Rendered:
    """Return the blocks of a message. `newest` allows those that a workspace may not have yet."""
    match message:
        case messages.AnswerMessage(answer):
            return answer_message(answer, newest=newest)
        case messages.IncidentMessage():
            return incident_message(message)
        case messages.IncidentDetails(incident):
            return details_message(incident)
        case (
            messages.CorrectionRequest()
            | messages.HandoverRequest()
            | messages.JoinRequest()
            | messages.FilingRequest()
        ):
            return request_message(message)
        case messages.ProposalMessage(answer):
            return proposal(answer)
        case messages.BadgeMessage(explanation):
            return badge_explanation(explanation)
        case messages.OwnerPing() | messages.OwnerQuestion():
            return owner_call(message)
        case messages.DriftAlarm():
            return drift_alarm(message)
        case messages.Notice():
            return notice(message, newest=newest)


def notice(message: messages.Notice, *, newest: bool) -> Rendered:
    if message.kind is messages.NoticeKind.PROGRESS and newest:
        return Rendered(fallback([message.text]), [blocks.plan(WORKING, message.steps, message.text), *_stop(message)])
    icon = NOTICE_ICONS[message.kind]
    first, *others = [_linked(prose(line, NOTICE_LINE), url) for line, url in message.lines or (("", ""),)]
    lines = [f"{icon}{first}", *others]
    if message.kind in (messages.NoticeKind.THANKS, messages.NoticeKind.PROGRESS):
        body = [blocks.context(blocks.listing(lines, "lines"))]
    else:
        body = blocks.sections(lines, "lines", NOTICE_TEXT if any(message.links) else blocks.MAX_TEXT)
    reference = f"Reference: {code(message.reference, NAME)}" if message.reference else ""
    return Rendered(fallback([message.text]), [*body, *small_text(reference), *_stop(message)])


def _linked(line: str, url: str) -> str:
    return f"{line} {link(url, messages.OPEN_LINK, LINK)}" if web_address(url) else line


def _stop(message: messages.Notice) -> list[blocks.Block]:
    return blocks.feedback_buttons([(messages.ButtonAction.STOP, message.stop_id)] if message.stop_id else [])
