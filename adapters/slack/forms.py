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
from core.incidents.filing import MAX_DRAFT, cut_draft
from core.incidents.filing import MAX_TITLE as MAX_FILING_TITLE
from core.model.curated import MAX_TEXT, CuratedAnswer, display_name
from core.model.errors import MalformedInput
from core.model.filing import FilingKind
from core.model.messages import (
    ADDED_BELOW,
    ASK_WHAT_IS_RIGHT,
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

FORM_PREFIX = "form:"  # prefix of a form's callback id, followed by its kind
CORRECTION, HANDOVER, CAUSE, ASK, FILING = "correction", "handover", "cause", "ask", "filing"
DETAILS = "details"  # kind of a window without input

MAX_TITLE = 24  # characters of a form's title and buttons
MAX_METADATA = 3_000  # characters
TEAM_GROUPS = 5  # groups of blocks.MAX_OPTIONS teams; a form is limited to 250 kB

MAX_PART = 2_800  # characters of a part of a draft, which leaves room to edit it
MAX_DRAFT_LINE = 800  # characters; a part is cut at a line end if there is one this near to its end

FILING_TITLES = {FilingKind.ISSUE: "Create issue", FilingKind.POSTMORTEM: "Publish postmortem"}
CONTINUED = "Text, continued"
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
        case FilingRequest():
            about = about.model_copy(update={"subject": form.incident_id})
            return _view(FILING, FILING_TITLES[form.kind], filing_fields(form), about, submit="File it")
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


TITLE = "title"  # id of the block and of its field
DRAFT_FIELDS = tuple(f"draft-{number}" for number in range(1, 7))  # a long draft is split, since a field takes 3 000


def filing_fields(request: FilingRequest) -> list[Block]:
    """Return the fields of a draft. Its text is split at line ends into as many fields as it needs."""
    parts = _split(request.text)
    return [
        blocks.section(FILE_IT[request.kind]),
        *blocks.picker(PICKER, PICK_TARGET, [(name, name) for name in request.targets], picked=True),
        blocks.text_field(TITLE, FILING_TITLE, MAX_FILING_TITLE, request.title, multiline=False),
        *(
            blocks.text_field(field, CONTINUED if number else FILING_TEXT, blocks.MAX_TEXT, part)
            | {"optional": number > 0}
            for number, (field, part) in enumerate(zip(DRAFT_FIELDS, parts, strict=False))
        ),
        *context(escape(ADDED_BELOW.format(footer=request.footer), LINE)),
    ]


def _split(text: str) -> list[str]:
    parts: list[str] = []
    rest = cut_draft(text.strip(), MAX_DRAFT)
    while len(rest) > blocks.MAX_TEXT:
        end = rest.rfind("\n", MAX_PART - MAX_DRAFT_LINE, MAX_PART)
        parts.append(rest[: end if end > 0 else MAX_PART])
        rest = rest[len(parts[-1]) :].strip()
    return [*parts, rest]


def request(message: CorrectionRequest | HandoverRequest | JoinRequest | FilingRequest) -> Rendered:
    """Return a form as a message, for the thread."""
    match message:
        case CorrectionRequest():
            return correction_request(message)
        case HandoverRequest():
            return handover_request(message)
        case JoinRequest():
            return join_request(message)
        case FilingRequest():
            return filing_request(message)


def filing_request(request: FilingRequest) -> Rendered:
    asked = FILE_IT[request.kind]
    return Rendered(
        fallback([asked]), [*filing_fields(request), *feedback_buttons([(ButtonAction.FILE, request.incident_id)])]
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
