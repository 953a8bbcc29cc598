"""Dialogs of Teams: to correct an answer, and to hand an incident over."""

from __future__ import annotations

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
    ASK_WHAT_IS_RIGHT,
    BUTTON_LABELS,
    FILE_IT,
    FILING_TEXT,
    FILING_TITLE,
    PICK_INCIDENT,
    PICK_TARGET,
    PICK_TEAM,
    PROPOSED,
    WHAT_WAS_IT,
    WHICH_INCIDENT,
    WHOSE_IS_IT,
    WHY_NOT_OURS,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
    JoinRequest,
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
    FilingRequest: "File it",
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
        case FilingRequest():
            shown = filing_card(form)
        case IncidentDetails(incident):
            return fitting(lambda room: details_card(incident, room))
    actions = [submit_button(action) for action in shown.content["actions"]]
    return Card(shown.content | {"actions": actions}, shown.summary)


def _window(title: str, shown: Card) -> dict[str, Any]:
    attached = {"contentType": "application/vnd.microsoft.card.adaptive", "content": shown.content}
    return {"type": "continue", "value": {"title": title, "height": "medium", "width": "medium", "card": attached}}


LABEL = "The right answer"
CAUSE = "The cause"


def correction_card(request: CorrectionRequest) -> Card:
    field = text_field("text", LABEL, MAX_TEXT)
    asked = line([run(ASK_WHAT_IS_RIGHT, len(ASK_WHAT_IS_RIGHT))])
    return card([*asked, field], [button(ButtonAction.CORRECTION, request.prediction_id)], ASK_WHAT_IS_RIGHT)


def cause_card(request: CauseRequest) -> Card:
    field = text_field("text", CAUSE, MAX_TEXT)
    asked = line([run(WHAT_WAS_IT, len(WHAT_WAS_IT))])
    send = button(ButtonAction.CAUSE_WRONG, request.prediction_id) | {"title": BUTTON_LABELS[ButtonAction.CORRECTION]}
    return card([*asked, field], [send], WHAT_WAS_IT)


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


def picking_card(request: HandoverRequest | JoinRequest, budget: SizeBudget) -> Card:
    return join_card(request, budget) if isinstance(request, JoinRequest) else handover_card(request, budget)


def handover_card(request: HandoverRequest, budget: SizeBudget) -> Card:
    asked = line([run(WHOSE_IS_IT, len(WHOSE_IS_IT))])
    body = [*asked, picker("choice", PICK_TEAM, request.teams, budget), text_field("text", WHY_NOT_OURS, MAX_TEXT)]
    buttons = [button(verdict, request.subject) for verdict in (ButtonAction.REASSIGN, ButtonAction.NOT_OURS)]
    return card(body, buttons, WHOSE_IS_IT)


def filing_card(request: FilingRequest) -> Card:
    """Return the card of a draft. If the draft is too long for a card, its end says so."""
    return fitting(lambda budget: _filing_card(request, budget), DRAFT_BUDGETS)


def _filing_card(request: FilingRequest, budget: SizeBudget) -> Card:
    asked, added = FILE_IT[request.kind], ADDED_BELOW.format(footer=request.footer)
    where = picker("choice", PICK_TARGET, [(name, name) for name in request.targets], budget)
    body = [
        *line([run(asked, len(asked))]),
        where | {"value": request.targets[0]},
        text_field("title", FILING_TITLE, MAX_TITLE, request.title, multiline=False),
        text_field("text", FILING_TEXT, MAX_DRAFT, cut_draft(request.text, budget.characters)),
        *note(added, len(added)),
    ]
    return card(body, [button(ButtonAction.FILE, request.incident_id)], asked)


def join_card(request: JoinRequest, budget: SizeBudget) -> Card:
    asked = line([run(WHICH_INCIDENT, len(WHICH_INCIDENT))])
    body = [*asked, picker("choice", PICK_INCIDENT, request.incidents, budget)]
    return card(body, [button(ButtonAction.JOIN, request.incident_id)], WHICH_INCIDENT)
