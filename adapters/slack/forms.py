"""Forms in Slack (modals): corrections, reassignments, causes, and questions about a message.

https://docs.slack.dev/surfaces/modals
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.slack import blocks
from adapters.slack.blocks import Block
from adapters.slack.incidents import details_blocks
from adapters.slack.mrkdwn import cut, escape, prose
from adapters.slack.parts import LINE, Rendered, context, fallback, feedback_buttons
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.errors import MalformedInput
from core.model.messages import (
    ASK_WHAT_IS_RIGHT,
    PICK_INCIDENT,
    PICK_TEAM,
    PROPOSED,
    WHAT_WAS_IT,
    WHICH_INCIDENT,
    WHOSE_IS_IT,
    WHY_NOT_OURS,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
    JoinRequest,
)

FORM_PREFIX = "form:"  # prefix of a form's callback id, followed by its kind
CORRECTION, HANDOVER, CAUSE, ASK = "correction", "handover", "cause", "ask"
DETAILS = "details"  # kind of a window without input

MAX_TITLE = 24  # characters of a form's title and buttons
MAX_METADATA = 3_000  # characters
TEAM_GROUPS = 5  # groups of blocks.MAX_OPTIONS teams; a form is limited to 250 kB

RIGHT_NOW = "Once somebody else confirms it, I answer with it."
TEAM_OR_NOT = "Leave it empty if you don’t know, and I’ll ask the other teams."
YOUR_QUESTION = "Your question"
AS_IT_STANDS = "Leave it empty to ask the question that the message contains."


class Origin(BaseModel):
    """The subject of a form, stored in the form and returned with its input."""

    model_config = ConfigDict(frozen=True)

    channel: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,255}$")]
    ts: Annotated[str, Field(pattern=r"^\d{1,12}(\.\d{1,9})?$")]  # of the root of the thread in which to reply
    subject: Annotated[str, Field(max_length=1_000)] = ""  # the prediction or incident of the button
    quoted: Annotated[str, Field(max_length=1_500)] = ""  # text of the message that is asked about
    in_person: bool = False  # the bot is not in the conversation, so it replies to the person privately


def origin(metadata: str) -> Origin:
    """Return the origin. Raises MalformedInput."""
    try:
        return Origin.model_validate_json(metadata)
    except ValidationError:
        raise MalformedInput("This is not one of Plumbline’s forms.") from None


def feedback_form(form: Form, about: Origin) -> Block:
    """Return the form that a button opens."""
    match form:
        case CorrectionRequest():
            about = about.model_copy(update={"subject": form.prediction_id})
            field = blocks.text_field(INPUT, LABEL, MAX_TEXT) | {"optional": True, "hint": _plain(RIGHT_NOW)}
            return _view(CORRECTION, "What is right?", [field], about)
        case HandoverRequest():
            about = about.model_copy(update={"subject": form.subject})
            reason = blocks.text_field(INPUT, WHY_NOT_OURS, MAX_TEXT) | {"optional": True}
            picker = blocks.picker(PICKER, PICK_TEAM, form.teams, TEAM_GROUPS)
            teams = [field | {"hint": _plain(TEAM_OR_NOT)} for field in picker]
            return _view(HANDOVER, "Reassign", [*_owner(form.owner), *teams, reason], about)
        case CauseRequest():
            about = about.model_copy(update={"subject": form.prediction_id})
            field = blocks.text_field(INPUT, "The cause", MAX_TEXT) | {"optional": True}
            return _view(CAUSE, "Wrong cause", [blocks.section(WHAT_WAS_IT), field], about)
        case IncidentDetails(incident):
            return _view(DETAILS, "Details", details_blocks(incident), about, submit="")


def question_form(about: Origin) -> Block:
    """Return the form for a question about a selected message."""
    field = blocks.text_field(INPUT, YOUR_QUESTION, MAX_TEXT) | {"optional": True, "hint": _plain(AS_IT_STANDS)}
    return _view(ASK, "Ask about this", [*context(escape(about.quoted, 2 * LINE)), field], about, submit="Ask")


def _owner(name: str) -> list[Block]:
    return context(f"Now with {escape(name, LINE)}." if name else "")


def _view(asked: str, title: str, shown: list[Block], about: Origin, *, submit: str = "Send") -> Block:
    return {
        "type": "modal",
        "callback_id": f"{FORM_PREFIX}{asked}",
        "title": _plain(cut(title, MAX_TITLE)),
        **({"submit": _plain(submit)} if submit else {}),
        "close": _plain("Cancel" if submit else "Close"),
        "private_metadata": about.model_dump_json(exclude_defaults=True),
        "blocks": shown,
    }


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


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
