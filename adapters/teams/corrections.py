"""Rendering of correction requests and proposals in Teams."""

from __future__ import annotations

from adapters.teams.elements import Card, SizeBudget, button, card, line, listing, note, prose, run, text_field
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.messages import (
    ASK_WHAT_IS_RIGHT,
    BUTTON_LABELS,
    PROPOSED,
    WHAT_WAS_IT,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
)

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
