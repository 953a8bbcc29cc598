"""Rendering of messages as Adaptive Cards: one function for each message of `core.model.messages`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from adapters.teams.answers import alarm_card, alarm_picture, answer_card, badge_card, footer_card, spoken
from adapters.teams.dialogs import filing_card, proposal_card, request_card
from adapters.teams.elements import (
    SIZE_BUDGETS,
    SPACE,
    Card,
    Element,
    SizeBudget,
    button,
    card,
    fitting,
    line,
    listing,
    note,
    prose,
    run,
    web_address,
)
from adapters.teams.incidents import call_card, details_card, incident_card
from core.model import messages

NOTICE_SIGNS = {
    messages.NoticeKind.INFORMATION: "",
    messages.NoticeKind.THANKS: "✓ ",
    messages.NoticeKind.PROGRESS: "◐ ",
    messages.NoticeKind.ERROR: "⚠ ",
}


def streamed(message: messages.Message) -> tuple[str, Card]:
    """Return a message as the end of a stream: the text, and the card below it."""
    match message:
        case messages.AnswerMessage(answer) if not answer.abstained:
            return spoken(answer), fitting(lambda budget: footer_card(answer, budget))
        case _:
            shown = render(message)
            return shown.summary, shown


def render(message: messages.Message, budgets: Sequence[SizeBudget] = SIZE_BUDGETS) -> Card:
    """Return the card of a message within the size limit of Teams. What does not fit is counted or ends in “…”.

    With fewer `budgets`, it is smaller still, for a message that was refused for its size.
    """
    fit = partial(fitting, budgets=budgets)
    match message:
        case messages.AnswerMessage(answer):
            return fit(lambda budget: answer_card(answer, budget))
        case messages.IncidentMessage():
            return fit(lambda budget: incident_card(message, budget))
        case messages.IncidentDetails(incident):
            return fit(lambda budget: details_card(incident, budget))
        case messages.CorrectionRequest() | messages.HandoverRequest() | messages.JoinRequest():
            return fit(lambda budget: request_card(message, budget))
        case messages.FilingRequest():
            return filing_card(message)
        case messages.ProposalMessage(answer):
            return fit(lambda budget: proposal_card(answer, budget))
        case messages.BadgeMessage(explanation):
            return fit(lambda budget: badge_card(explanation, budget))
        case messages.OwnerPing() | messages.OwnerQuestion():
            return call_card(message)
        case messages.DriftAlarm():
            picture = alarm_picture(message)
            return fit(lambda budget: alarm_card(message, picture if budget is SIZE_BUDGETS[0] else b""))
        case messages.Notice():
            return fit(lambda budget: _notice_card(message, budget))


def _notice_card(notice: messages.Notice, budget: SizeBudget) -> Card:
    sign = NOTICE_SIGNS[notice.kind]
    (first, url), *others = notice.lines or (("", ""),)
    lines = [(f"{sign}{first}", url), *others]
    shown = [each for each in lines if each[0].strip()]
    reference = note(f"Reference: {notice.reference}", 100) if notice.reference else []
    stop = [button(messages.ButtonAction.STOP, notice.stop_id)] if notice.stop_id else []
    return card([*listing(shown, budget, "lines", lambda each: _line(*each, budget)), *reference], stop, notice.text)


def _line(text: str, url: str, budget: SizeBudget) -> list[Element]:
    runs = prose(text, budget.characters) or [run(text, budget.characters)]
    link = [SPACE, run(messages.OPEN_LINK, len(messages.OPEN_LINK), url=url)] if web_address(url) else []
    return line([*runs, *link])
