"""Forms in Slack (modals): corrections, reassignments, causes, and questions about a message.

https://docs.slack.dev/surfaces/modals
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.slack import blocks
from adapters.slack.blocks import Block
from adapters.slack.corrections import INPUT, LABEL
from adapters.slack.handovers import PICKER
from adapters.slack.incidents import details_blocks
from adapters.slack.mrkdwn import cut, escape
from adapters.slack.parts import LINE, context
from core.model.curated import MAX_TEXT
from core.model.errors import MalformedInput
from core.model.messages import (
    PICK_TEAM,
    WHAT_WAS_IT,
    WHY_NOT_OURS,
    CauseRequest,
    CorrectionRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
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
