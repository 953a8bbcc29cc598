"""Forms in Slack (modals): corrections, reassignments, causes, and questions about a message.

https://docs.slack.dev/surfaces/modals
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.slack import blocks
from adapters.slack.blocks import LINE, Block, Rendered, fallback, feedback_buttons, paragraph, small_text
from adapters.slack.incidents import details_blocks
from adapters.slack.mrkdwn import cut, escape, prose
from core.incidents.filing import MAX_TITLE as MAX_FILING_TITLE
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.errors import MalformedInput
from core.model.filing import FilingKind
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

FORM_PREFIX = "form:"  # prefix of a form's callback id, followed by its kind
CORRECTION, HANDOVER, CAUSE, ASK, FILING, UPDATE = "correction", "handover", "cause", "ask", "filing", "update"
DETAILS = "details"  # kind of a window without input

INPUT, PICKER = "correction", "team"  # ids of the blocks of the text field and the picker, and of the fields in them

TITLE = "title"  # id of the block and of its field
DRAFT_FIELDS = tuple(f"draft-{number}" for number in range(1, 7))  # a long draft is split, since a field takes 3 000

MAX_TITLE = 24  # characters of a form's title and buttons
TEAM_GROUPS = 5  # groups of blocks.MAX_OPTIONS teams; a form is limited to 250 kB

MAX_PART = 2_800  # characters of a part of a draft, which leaves room to edit it
MAX_DRAFT_LINE = 800  # characters; a part is cut at a line end, else at a space, if there is one this near to its end

DRAFTS = {  # kind and title
    FilingKind.ISSUE: (FILING, "Create issue"),
    FilingKind.POSTMORTEM: (FILING, "Publish postmortem"),
    FilingKind.UPDATE: (UPDATE, "Stakeholder update"),
}
CONTINUED = "Text, continued"
RIGHT_NOW = "Once somebody else confirms it, I answer with it."
TEAM_OR_NOT = "Leave it empty if you don’t know, and I’ll ask the other teams."
YOUR_QUESTION = "Your question"
AS_IT_STANDS = "Leave it empty to ask the question that the message contains."

MODALS: dict[type[Form], tuple[str, str, str]] = {  # kind, title, and the hint below the first field
    CorrectionRequest: (CORRECTION, "What is right?", RIGHT_NOW),
    HandoverRequest: (HANDOVER, "Reassign", TEAM_OR_NOT),
    CauseRequest: (CAUSE, "Wrong cause", ""),
}


class FormOrigin(BaseModel):
    """The subject of a form, stored in the form and returned with its input."""

    model_config = ConfigDict(frozen=True)

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
    if isinstance(form, IncidentDetails):
        return _view(DETAILS, "Details", details_blocks(form.incident), about, submit="")
    view = request_view(form)
    about = about.model_copy(update={"subject": view.subject})
    if isinstance(form, FilingRequest):
        shown = [blocks.section(view.asked), *_draft_fields(form, view)]
        modal, title = DRAFTS[form.kind]
        return _view(modal, title, shown, about, submit=view.buttons[0][1])
    modal, title, hint = MODALS[type(form)]
    owner = f"Current owner: {escape(form.owner, LINE)}." if isinstance(form, HandoverRequest) and form.owner else ""
    explained = view.asked if isinstance(form, CauseRequest) else ""
    first, *others = [
        *blocks.picker(PICKER, view.picker, view.options, TEAM_GROUPS),
        blocks.text_field(INPUT, view.field, MAX_TEXT) | {"optional": True},
    ]
    first |= {"hint": _plain(hint)} if hint else {}
    return _view(modal, title, [*small_text(owner), *paragraph(explained), first, *others], about)


def _draft_fields(draft: FilingRequest, view: RequestView) -> list[Block]:
    """Return the fields of a draft. Its text is split at line ends into as many fields as it needs."""
    parts = _split(draft.text)
    return [
        *blocks.picker(PICKER, view.picker, view.options, picked=True),
        blocks.text_field(TITLE, FILING_TITLE, MAX_FILING_TITLE, draft.title, multiline=False),
        *(
            blocks.text_field(field, CONTINUED if number else view.field, blocks.MAX_TEXT, part)
            | {"optional": number > 0}
            for number, (field, part) in enumerate(zip(DRAFT_FIELDS, parts, strict=False))
        ),
        *small_text(ADDED_BELOW[draft.kind]),
    ]


def _split(text: str) -> list[str]:
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > blocks.MAX_TEXT:
        ends = (rest.rfind(end, MAX_PART - MAX_DRAFT_LINE, MAX_PART) for end in "\n ")
        parts.append(rest[: next((end for end in ends if end > 0), MAX_PART)])
        rest = rest[len(parts[-1]) :].strip()
    return [*parts, rest]


def question_form(about: FormOrigin) -> Block:
    """Return the form for a question about a selected message."""
    field = blocks.text_field(INPUT, YOUR_QUESTION, MAX_TEXT) | {"optional": True, "hint": _plain(AS_IT_STANDS)}
    return _view(ASK, "Ask about this", [*small_text(escape(about.quoted, 2 * LINE)), field], about, submit="Ask")


def _view(modal: str, title: str, shown: list[Block], about: FormOrigin, *, submit: str = "Send") -> Block:
    return {
        "type": "modal",
        "callback_id": f"{FORM_PREFIX}{modal}",
        "title": _plain(cut(title, MAX_TITLE)),
        **({"submit": _plain(submit)} if submit else {}),
        "close": _plain("Cancel" if submit else "Close"),
        "private_metadata": about.model_dump_json(exclude_defaults=True),
        "blocks": shown,
    }


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def request_message(request: Request) -> Rendered:
    view = request_view(request)
    field = [blocks.text_field(INPUT, view.field, MAX_TEXT) | ({"optional": True} if view.picker else {})]
    fields = [*blocks.picker(PICKER, view.picker, view.options), *(field if view.field else [])]
    return Rendered(
        fallback([view.asked]),
        [
            blocks.section(view.asked),
            *(_draft_fields(view.draft, view) if view.draft else fields),
            *feedback_buttons((verdict, view.subject) for verdict, _ in view.buttons),
        ],
    )


def proposal(answer: CuratedAnswer) -> Rendered:
    lines = [prose(line, blocks.MAX_TEXT // 2) for line in answer.text.splitlines() if line.strip()]
    said_by = answer.attestation or f"Said by {display_name(answer.author)}"
    buttons = [] if answer.is_confirmed else [(ButtonAction.CONFIRM, answer.id)]
    return Rendered(
        fallback([answer.text]),
        [
            *small_text(f"{PROPOSED} {prose(answer.question, 2 * LINE)}"),
            blocks.section(blocks.listing(lines, "lines", blocks.MAX_TEXT)),
            *small_text(prose(said_by, LINE)),
            *feedback_buttons(buttons),
        ],
    )
