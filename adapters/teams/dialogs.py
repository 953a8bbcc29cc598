"""Dialogs in Teams: a card in a window, which is submitted as a whole.

https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/task-modules/task-modules-bots
"""

from __future__ import annotations

from typing import Any

from adapters.teams.corrections import cause_card, correction_card
from adapters.teams.elements import Card, Element, card, fitting, heading, plain, submit_button, text_field
from adapters.teams.handovers import handover_card
from adapters.teams.incidents import details_card
from core.model.messages import CauseRequest, CorrectionRequest, Form, HandoverRequest, IncidentDetails

EXTENSION = "ask"  # the command of the message extension, as in the manifest
EXTENSION_TITLE = "Ask Plumbline about this"
QUESTION_FIELD = "question"
MAX_QUESTION = 2_000  # characters
ASKED = "What would you like to know? Leave it empty to ask the question that the message contains."

TITLES: dict[type[Form], str] = {
    CorrectionRequest: "Correct an answer",
    HandoverRequest: "Reassign",
    CauseRequest: "Wrong cause",
    IncidentDetails: "Details",
}


def form_dialog(form: Form) -> dict[str, Any]:
    """Return a window with the form. Its buttons are returned as task/submit."""
    return _window(TITLES[type(form)], _form_card(form))


def ask_dialog() -> dict[str, Any]:
    """Return a window that asks for a question about a message."""
    send: Element = {"type": "Action.Submit", "title": "Ask", "data": {}}
    body = [heading(ASKED), text_field(QUESTION_FIELD, "Question", MAX_QUESTION)]
    return _window(EXTENSION_TITLE, card(body, [send], ASKED))


def said_in_dialog(sentence: str) -> dict[str, Any]:
    """Return a sentence in place of a window, or in it before it closes."""
    return {"type": "message", "value": plain(sentence, 300)}


def _form_card(form: Form) -> Card:
    match form:
        case CorrectionRequest():
            shown = correction_card(form)
        case HandoverRequest():
            shown = fitting(lambda room: handover_card(form, room))
        case CauseRequest():
            shown = cause_card(form)
        case IncidentDetails(incident):
            return fitting(lambda room: details_card(incident, room))
    actions = [submit_button(action) for action in shown.content["actions"]]
    return Card(shown.content | {"actions": actions}, shown.summary)


def _window(title: str, shown: Card) -> dict[str, Any]:
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": shown.content}
    return {"type": "continue", "value": {"title": title, "height": "medium", "width": "medium", "card": attached}}
