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
from core.incidents.filing import MAX_DRAFT, MAX_TITLE, cut_draft
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.messages import (
    ADDED_BELOW,
    FILING_TITLE,
    PROPOSED,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
    Request,
    RequestView,
    request_view,
)

DRAFT_BUDGETS = tuple(SizeBudget(20, characters) for characters in (12_000, 8_000, 5_000, 3_000))
EXTENSION = "ask"  # the command of the message extension, as in the manifest
EXTENSION_TITLE = "Ask Plumbline about this"
QUESTION_FIELD = "question"
MAX_QUESTION = 2_000  # characters
ASKED = "What would you like to know? Leave it empty to ask the question that the message contains."

TITLES: dict[type[Form], str] = {
    CorrectionRequest: "Correct an answer",
    HandoverRequest: "Reassign",
    CauseRequest: "Wrong cause",
    FilingRequest: "Edit and send",
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
    """Return a sentence that is shown instead of a window, or in it before it closes."""
    return {"type": "message", "value": plain(sentence, 300)}


def _form_card(form: Form) -> Card:
    if isinstance(form, IncidentDetails):
        return fitting(lambda room: details_card(form.incident, room))
    shown = filing_card(form) if isinstance(form, FilingRequest) else fitting(lambda room: request_card(form, room))
    actions = [submit_button(action) for action in shown.content["actions"]]
    return replace(shown, content=shown.content | {"actions": actions})


def _window(title: str, shown: Card) -> dict[str, Any]:
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": shown.content}
    return {"type": "continue", "value": {"title": title, "height": "medium", "width": "medium", "card": attached}}


def filing_card(request: FilingRequest) -> Card:
    """Return the card of a draft. If the draft is too long for a card, its end says so."""
    return fitting(lambda budget: request_card(request, budget), DRAFT_BUDGETS)


def request_card(request: Request, budget: SizeBudget) -> Card:
    view = request_view(request)
    fields = (
        _draft_fields(view.draft, view, budget)
        if view.draft
        else [
            *([picker("choice", view.picker, view.options, budget)] if view.picker else []),
            *([text_field("text", view.field, MAX_TEXT)] if view.field else []),
        ]
    )
    buttons = [button(verdict, view.subject) | {"title": label} for verdict, label in view.buttons]
    return card([*line([run(view.asked, len(view.asked))]), *fields], buttons, view.asked)


def _draft_fields(draft: FilingRequest, view: RequestView, budget: SizeBudget) -> list[Element]:
    added = ADDED_BELOW[draft.kind]
    return [
        picker("choice", view.picker, view.options, budget) | {"value": draft.targets[0]},
        text_field("title", FILING_TITLE, MAX_TITLE, draft.title, multiline=False),
        text_field("text", view.field, MAX_DRAFT, cut_draft(draft.text, budget.characters)),
        *note(added, len(added)),
    ]


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
