"""Rendering of reassignment and merge requests in Teams: a picker, and a field for the reason."""

from __future__ import annotations

from adapters.teams.elements import Card, SizeBudget, button, card, line, picker, run, text_field
from core.model.curated import MAX_TEXT
from core.model.messages import (
    PICK_INCIDENT,
    PICK_TEAM,
    WHICH_INCIDENT,
    WHOSE_IS_IT,
    WHY_NOT_OURS,
    ButtonAction,
    HandoverRequest,
    JoinRequest,
)


def handover_card(request: HandoverRequest, budget: SizeBudget) -> Card:
    asked = line([run(WHOSE_IS_IT, len(WHOSE_IS_IT))])
    body = [*asked, picker("choice", PICK_TEAM, request.teams, budget), text_field("text", WHY_NOT_OURS, MAX_TEXT)]
    buttons = [button(verdict, request.subject) for verdict in (ButtonAction.REASSIGN, ButtonAction.NOT_OURS)]
    return card(body, buttons, WHOSE_IS_IT)


def join_card(request: JoinRequest, budget: SizeBudget) -> Card:
    asked = line([run(WHICH_INCIDENT, len(WHICH_INCIDENT))])
    body = [*asked, picker("choice", PICK_INCIDENT, request.incidents, budget)]
    return card(body, [button(ButtonAction.JOIN, request.incident_id)], WHICH_INCIDENT)
