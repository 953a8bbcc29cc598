"""Rendering of correction requests and proposals in Slack."""

from __future__ import annotations

from adapters.slack import blocks
from adapters.slack.mrkdwn import prose
from adapters.slack.parts import LINE, Rendered, context, fallback, feedback_buttons
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.messages import ASK_WHAT_IS_RIGHT, PROPOSED, ButtonAction, CorrectionRequest

INPUT = "correction"  # id of the block and of its field
LABEL = "The right answer"


def correction_request(request: CorrectionRequest) -> Rendered:
    return Rendered(
        fallback([ASK_WHAT_IS_RIGHT]),
        [
            blocks.section(ASK_WHAT_IS_RIGHT),
            blocks.text_field(INPUT, LABEL, MAX_TEXT),
            *feedback_buttons([(ButtonAction.CORRECTION, request.prediction_id)]),
        ],
    )


def proposal(answer: CuratedAnswer) -> Rendered:
    lines = [prose(line, blocks.MAX_TEXT // 2) for line in answer.text.splitlines() if line.strip()]
    said_by = answer.attestation or f"Said by {display_name(answer.author)}"
    buttons = [] if answer.is_confirmed else [(ButtonAction.CONFIRM, answer.id)]
    return Rendered(
        fallback([answer.text]),
        [
            *context(f"{PROPOSED} {prose(answer.question, 2 * LINE)}"),
            blocks.section(blocks.listing(lines, "lines", blocks.MAX_TEXT)),
            *context(prose(said_by, LINE)),
            *feedback_buttons(buttons),
        ],
    )
