"""Dialogs of Teams: to correct an answer, and to hand an incident over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from adapters.teams.elements import (
    Card,
    Element,
    SizeBudget,
    button,
    card,
    fitting,
    heading,
    line,
    listing,
    note,
    picker,
    plain,
    prose,
    run,
    submit_button,
    text_field,
)
from adapters.teams.incidents import details_card
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.messages import (
    PROPOSED,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
    JoinRequest,
    request_view,
)

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
    if isinstance(form, IncidentDetails):
        return fitting(lambda room: details_card(form.incident, room))
    shown = fitting(lambda room: request_card(form, room))
    actions = [submit_button(action) for action in shown.content["actions"]]
    return replace(shown, content=shown.content | {"actions": actions})


def _window(title: str, shown: Card) -> dict[str, Any]:
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": shown.content}
    return {"type": "continue", "value": {"title": title, "height": "medium", "width": "medium", "card": attached}}


def request_card(request: CorrectionRequest | CauseRequest | HandoverRequest | JoinRequest, budget: SizeBudget) -> Card:
    view = request_view(request)
    fields = [
        *([picker("choice", view.picker, view.options, budget)] if view.picker else []),
        *([text_field("text", view.field, MAX_TEXT)] if view.field else []),
    ]
    buttons = [button(verdict, view.subject) | {"title": label} for verdict, label in view.buttons]
    return card([*line([run(view.asked, len(view.asked))]), *fields], buttons, view.asked)


def proposal_card(answer: CuratedAnswer, budget: SizeBudget) -> Card:
    lines = [text for text in answer.text.splitlines() if text.strip()]
    said_by = answer.attestation or f"Said by {display_name(answer.author)}"
    buttons = [] if answer.is_confirmed else [button(ButtonAction.CONFIRM, answer.id)]
    body = [
        *note(f"{PROPOSED} {answer.question}", budget.characters),
        *listing(lines, budget, "lines", lambda text: line(prose(text, budget.characters))),
        *note(said_by, budget.characters),
    ]
    return card(body, buttons, answer.text)
