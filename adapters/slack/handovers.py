"""Rendering of reassignment and merge requests in Slack: a picker, and a field for the reason."""

from __future__ import annotations

from adapters.slack import blocks
from adapters.slack.corrections import INPUT
from adapters.slack.parts import Rendered, fallback, feedback_buttons
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

PICKER = "team"  # id of the block and of its picker


def join_request(request: JoinRequest) -> Rendered:
    return Rendered(
        fallback([WHICH_INCIDENT]),
        [
            blocks.section(WHICH_INCIDENT),
            *blocks.picker(PICKER, PICK_INCIDENT, request.incidents),
            *feedback_buttons([(ButtonAction.JOIN, request.incident_id)]),
        ],
    )


def handover_request(request: HandoverRequest) -> Rendered:
    buttons = [(verdict, request.subject) for verdict in (ButtonAction.REASSIGN, ButtonAction.NOT_OURS)]
    return Rendered(
        fallback([WHOSE_IS_IT]),
        [
            blocks.section(WHOSE_IS_IT),
            *blocks.picker(PICKER, PICK_TEAM, request.teams),
            blocks.text_field(INPUT, WHY_NOT_OURS, MAX_TEXT) | {"optional": True},
            *feedback_buttons(buttons),
        ],
    )
