"""Forms in Slack (modals): corrections, reassignments, causes, and questions about a message.

https://docs.slack.dev/surfaces/modals
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from adapters.slack.blocks import Block
from adapters.slack.mrkdwn import cut
from adapters.slack.render import body_blocks
from core.model.errors import MalformedInput
from core.model.message_view import MessageView
from core.model.messages import ButtonAction, Form
from core.views.message_view import message_view
from core.views.request_view import question_view

FORM_PREFIX = "form:"  # prefix of a form's callback id, followed by its kind
CORRECTION, HANDOVER, CAUSE, ASK, FILING, UPDATE = "correction", "handover", "cause", "ask", "filing", "update"
DETAILS = "details"  # kind of a window without input
FORMS: dict[ButtonAction | None, str] = {  # by the first button of the message
    ButtonAction.CORRECTION: CORRECTION,
    ButtonAction.REASSIGN: HANDOVER,
    ButtonAction.CAUSE_WRONG: CAUSE,
    ButtonAction.FILE: FILING,
    ButtonAction.SEND_UPDATE: UPDATE,
}

MAX_TITLE = 24  # characters of a form's title and buttons


class FormOrigin(BaseModel, frozen=True):
    """The subject of a form, stored in the form and returned with its input."""

    channel: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,255}$")]
    ts: Annotated[str, Field(pattern=r"^\d{1,12}(\.\d{1,9})?$")]  # of the root of the thread in which to reply
    subject: Annotated[str, Field(max_length=1_000)] = ""  # the prediction or incident of the button
    quoted: Annotated[str, Field(max_length=1_500)] = ""  # text of the message that is asked about
    in_person: bool = False  # the bot is not in the conversation, so it replies to the person privately


def origin(metadata: str) -> FormOrigin:
    """Return the origin. Raises MalformedInput."""
    try:
        return FormOrigin.model_validate_json(metadata)
    except ValidationError:
        raise MalformedInput("This is not one of Plumbline’s forms.") from None


def feedback_form(form: Form, about: FormOrigin) -> Block:
    """Return the form that a button opens."""
    view = message_view(form)
    if not view.buttons:
        return _form(DETAILS, view, about, submit="")
    first = view.buttons[0]
    submit = "Send" if len(view.buttons) > 1 else first.label
    return _form(FORMS[first.verdict], view, about.model_copy(update={"subject": first.subject}), submit)


def question_form(about: FormOrigin) -> Block:
    """Return the form for a question about a selected message."""
    return _form(ASK, question_view(about.quoted), about, submit="Ask")


def _form(modal: str, view: MessageView, about: FormOrigin, submit: str) -> Block:
    return {
        "type": "modal",
        "callback_id": f"{FORM_PREFIX}{modal}",
        "title": _plain(cut(view.title, MAX_TITLE)),
        **({"submit": _plain(submit)} if submit else {}),
        "close": _plain("Cancel" if submit else "Close"),
        "private_metadata": about.model_dump_json(exclude_defaults=True),
        "blocks": body_blocks(view),
    }


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}
