"""Forms in Slack (modals): what is right, whose it is, what the cause was, and what to ask about a message.

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

FORM_PREFIX = "form:"  # of a form's callback id; what is asked follows
CORRECTION, HANDOVER, CAUSE, ASK = "correction", "handover", "cause", "ask"
DETAILS = "details"  # of a window that only shows something

MAX_TITLE = 24  # characters of a form's title and of its buttons
MAX_METADATA = 3_000  # characters
TEAM_GROUPS = 5  # of blocks.MAX_OPTIONS teams: a form holds 250 kB in all

RIGHT_NOW = "Once somebody else confirms it, I answer with it."
TEAM_OR_NOT = "Leave it empty if you don’t know, and I’ll ask the other teams."
YOUR_QUESTION = "Your question"
AS_IT_STANDS = "Leave it empty to ask the question that the message contains."


class Origin(BaseModel):
    """The subject of a form, which travels in the form and comes back with the entries."""

    model_config = ConfigDict(frozen=True)

    channel: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,255}$")]
    ts: Annotated[str, Field(pattern=r"^\d{1,12}(\.\d{1,9})?$")]  # of the root of the thread that an answer belongs to
    subject: Annotated[str, Field(max_length=1_000)] = ""  # the prediction or incident that was pressed on
    quoted: Annotated[str, Field(max_length=1_500)] = ""  # what was said in the message that is asked about
    in_person: bool = False  # the bot is not in the conversation: it answers whoever asks, alone


def origin(metadata: str) -> Origin:
    """Raises MalformedInput."""
    try:
        return Origin.model_validate_json(metadata)
    except ValidationError:
        raise MalformedInput("This is not one of Plumbline’s forms.") from None


def feedback_form(form: Form, about: Origin) -> Block:
    """The form that a press of a button opens."""
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
    """Return the form that asks for a question about a message that somebody chose."""
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
