"""Models of the parts of Slack's payloads that we read. Unknown fields are ignored; missing ones are MalformedInput.

The text that people see in a message of Slack: its own, and that of its blocks, attachments and forwarded messages.

https://docs.slack.dev/reference/block-kit/blocks · https://docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape, unescape
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from core.model.conversation import MAX_MESSAGE, Person, Platform, cut_message
from core.model.errors import MalformedInput

MAX_DEPTH = 12  # nested elements
MAX_PARTS = 1_000  # of one message
NO_FALLBACK = "[no preview available]"  # Slack's own text for an attachment of blocks

_SIGNS = re.compile(r"[\W_]+")
_STRUCK = re.compile(
    r"(?P<code>```(?s:.*?)(?:```|\Z)|`[^`\n]++`)"
    r"|[ \t]?+(?<![\w~/])(?P<sign>~~?)(?![~\s/])(?:<[^<>\n]*+>|`[^`\n]*+`|[^~\n])++(?<!\s)(?P=sign)(?![\w~])"
)
_OWN = ("pretext", "title", "text")
_INNER = ("blocks", "fields", "elements", "message", "message_blocks", "attachments")
_RICH = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_RAW = ("plain_text", "raw_text", "markdown")  # texts without Slack's markup
_PRESSED = ("actions", "context_actions", "input", "button")
_MENTIONED = {
    "user": ("@", "user_id"),
    "channel": ("#", "channel_id"),
    "usergroup": ("!subteam^", "usergroup_id"),
    "broadcast": ("!", "range"),
}


def without_struck(text: str) -> str:
    """Return a text in Slack's markup without what is struck out, of which code is never a part."""
    return _STRUCK.sub(lambda match: match["code"] or "", text)


# Slack omits a text, or sends null.
Text = Annotated[
    str, BeforeValidator(lambda text: text or ""), AfterValidator(without_struck), AfterValidator(cut_message)
]


class Content(BaseModel):
    """The part of a message that is seen, without what is struck out. Texts are in Slack's markup, like `text`."""

    model_config = ConfigDict(frozen=True)

    text: Text = ""
    blocks: Any = None
    attachments: Any = None
    files: Any = None

    @property
    def attached(self) -> str:
        """Return what is seen beside the text. Slack repeats a text in blocks, and the reverse."""
        seen_words, parts, room = _words(self.text), list[str](), MAX_MESSAGE
        for part in map(without_struck, self._parts()):
            words = _words(part)
            if room > 0 and words.strip() and words not in seen_words:
                parts.append(part)
                seen_words, room = f"{seen_words}\0{words}", room - len(part)
        return cut_message("\n".join(parts))

    @property
    def seen(self) -> str:
        """Return everything that is seen."""
        return cut_message("\n".join(filter(None, (self.text, self.attached))))

    def _parts(self) -> Iterator[str]:
        whole = {"blocks": self.blocks, "attachments": self.attachments, "files": self.files}
        for number, part in enumerate(_texts(whole, MAX_DEPTH)):
            if number == MAX_PARTS:
                return
            yield part


def _words(text: str) -> str:
    return f" {_SIGNS.sub(' ', unescape(text)).strip()} "


def _texts(element: Any, depth: int) -> Iterator[str]:
    """Yield the texts of an element and those within it, in the order in which they are seen."""
    kind = element.get("type")
    if not depth or kind in _PRESSED:
        return
    if kind in _RICH:
        yield _rich(element)
    elif kind == "rich_text_list":
        yield _list(element, depth)
    elif kind == "table":
        yield _table(element, depth)
    elif isinstance(element.get("value"), str):  # a field of an attachment
        yield ": ".join(filter(None, (_text(element.get("title")), _text(element["value"]))))
    else:
        own = [_text(element)] if kind in _RAW else [part for key in _OWN if (part := _text(element.get(key)))]
        own += [part for key in _INNER for each in _each(element.get(key)) for part in _texts(each, depth - 1)]
        fallback = _text(element.get("fallback"))
        yield from own or ([fallback] if fallback != NO_FALLBACK else [])
        yield from map(_file, _each(element.get("files")))


def _text(value: Any) -> str:
    """Return a text, which is a string in Slack's markup, or an object that may be of another."""
    if isinstance(value, dict):
        text = str(value.get("text") or "")
        return escape(text, quote=False) if value.get("type") in _RAW else text
    return value.strip() if isinstance(value, str) else ""


def _each(value: Any) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def _file(file: dict[str, Any]) -> str:
    name, title = _text(file.get("name")), _text(file.get("title"))
    shown = f"{title}, {name}" if name and title not in ("", name, name.rpartition(".")[0]) else name or title
    return f"(attachment: {shown})" if shown else ""


def _rich(element: dict[str, Any]) -> str:
    text = "".join(map(_run, _each(element.get("elements"))))
    if element["type"] == "rich_text_preformatted":
        return f"```\n{text}\n```"
    return "\n".join(f"&gt; {line}" for line in text.split("\n")) if element["type"] == "rich_text_quote" else text


def _run(run: dict[str, Any]) -> str:
    """Return a part of a line in Slack's markup; empty if it is struck out."""
    style = given if isinstance(given := run.get("style"), dict) else {}
    if style.get("strike"):
        return ""
    match run.get("type"):
        case "link":
            label = escape(_text(run.get("text")), quote=False)
            return f"<{escape(_text(run.get('url')), quote=False)}{'|' if label else ''}{label}>"
        case "user" | "channel" | "usergroup" | "broadcast" as kind:
            sign, key = _MENTIONED[kind]
            return f"<{sign}{run.get(key)}>"
        case "emoji":
            return f":{run.get('name')}:"
        case _:
            text = escape(str(run.get("text") or run.get("fallback") or run.get("value") or ""), quote=False)
            return f"`{text}`" if style.get("code") and text else text


def _list(element: dict[str, Any], depth: int) -> str:
    first, indent = (each if isinstance(each := element.get(key), int) else 0 for key in ("offset", "indent"))
    items = [" ".join(_texts(item, depth - 1)) for item in _each(element.get("elements"))]
    is_ordered = element.get("style") == "ordered"
    lines = (f"{number}. {item}" if is_ordered else f"• {item}" for number, item in enumerate(items, start=first + 1))
    return "\n".join("    " * min(indent, MAX_DEPTH) + line for line in lines)


def _table(element: dict[str, Any], depth: int) -> str:
    """Return a table in Markdown."""
    rows = [_each(row) for row in element.get("rows") or () if isinstance(row, list)]
    cells = [[" ".join(_texts(cell, depth - 1)).replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([*lines[:1], "|---" * len(cells[0]) + "|", *lines[1:]]) if lines else ""


MAX_FIELDS_NAMED = 5  # in an error
MAX_FIELD = 60  # characters of the name of one

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,255}$")]
_Reference = str | dict[str, Any] | None
Timestamp = Annotated[str, Field(pattern=r"^\d{1,12}(\.\d{1,9})?$")]  # seconds since 1970


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True)


class _AnyAction(_Payload):
    action_id: str


class _AnyEvent(_Payload):
    type: str
    channel: _Reference = None
    user: _Reference = None


class Envelope(_Payload):
    """The common shape of payloads that Bolt relies on."""

    type: str = ""
    event: _AnyEvent | None = None
    authorizations: list[dict[str, Any]] | None = None
    enterprise: _Reference = None
    team: _Reference = None
    channel: _Reference = None
    user: _Reference = None
    view: dict[str, Any] | None = None
    actions: Annotated[list[_AnyAction], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _has_its_part(self) -> Self:
        actions = dict.fromkeys(("block_actions", "interactive_message"), self.actions)
        part = {"event_callback": self.event, "view_submission": self.view} | actions
        if part.get(self.type, self) is None:
            raise ValueError(f"a payload of type {self.type} is incomplete")
        return self


class _Message(_Payload, Content):
    ts: Timestamp
    thread_ts: Timestamp | None = None
    user: Id | None = None
    subtype: str | None = None
    bot_id: str | None = None


class MessageEvent(_Message):
    """An `app_mention` or `message` event."""

    channel: Id
    channel_type: str = ""


class DeletionEvent(_Payload):
    """A `message` event of the subtype `message_deleted`."""

    channel: Id
    channel_type: str = ""
    deleted_ts: Timestamp
    previous_message: _Message | None = None


class _Edit(_Payload):
    ts: Timestamp


class _Version(_Message):
    """A message before or after a change."""

    edited: _Edit | None = None


class ChangeEvent(_Payload):
    """A `message` event of the subtype `message_changed`: an edit, an unfurled link, a new reply, or a deletion."""

    channel: Id
    channel_type: str = ""
    message: _Version
    previous_message: _Version | None = None

    @property
    def is_deletion(self) -> bool:
        """Return whether the message was deleted. A deleted message with replies leaves a tombstone."""
        return self.message.subtype == "tombstone"

    @property
    def is_edit(self) -> bool:
        """Return whether a person changed the text of the message."""
        before = self.previous_message
        by_person = self.message.user is not None and self.message.bot_id is None
        return by_person and self.message.edited is not None and (before is None or before.text != self.message.text)


class SlashCommand(_Payload):
    channel_id: Id
    user_id: Id
    trigger_id: Id
    text: Text = ""
    user_name: str = ""


class _User(_Payload):
    id: Id
    name: str = ""
    username: str = ""

    @property
    def person(self) -> Person:
        return Person(Platform.SLACK, self.id, self.name or self.username)


class _Channel(_Payload):
    id: Id


class _Option(_Payload):
    value: Annotated[str, Field(max_length=150)]


class _Action(_Payload):
    """A pressed button, or a selection in a message's menu."""

    action_id: str
    value: str = ""
    selected_option: _Option | None = None
    action_ts: Timestamp

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.value and (self.selected_option is None or not self.selected_option.value):
            raise ValueError("neither a value nor a picked option")
        return self


class _Field(_Payload):
    selected_option: _Option | None = None
    value: Annotated[str, Field(max_length=10_000)] | None = None


class FormState(_Payload):
    """The input in the fields of a message or form. A field and its block have the same name."""

    values: dict[str, dict[str, _Field]] = {}

    def typed(self, field: str) -> str:
        return self.values.get(field, {}).get(field, _Field()).value or ""

    def picked(self, field: str) -> str:
        option = self.values.get(field, {}).get(field, _Field()).selected_option
        return option.value if option else ""


class MessageShortcut(_Payload):
    """A `message_action` payload: our entry in a message's menu was selected."""

    user: _User
    channel: _Channel
    message: _Message
    trigger_id: Id


class ButtonPress(_Payload):
    """A `block_actions` payload of a button in a message."""

    user: _User
    channel: _Channel
    message: _Message
    trigger_id: Id | None = None
    state: FormState = FormState()
    actions: Annotated[list[_Action], Field(min_length=1, max_length=1)]

    @property
    def action(self) -> _Action:
        return self.actions[0]


class _Item(_Payload):
    channel: Id | None = None
    ts: Timestamp | None = None


class ReactionEvent(_Payload):
    """A `reaction_added` or `reaction_removed` event."""

    type: str
    user: Id
    reaction: Annotated[str, Field(max_length=200)]
    item: _Item
    item_user: Id | None = None
    event_ts: Timestamp


class HomeOpened(_Payload):
    """An `app_home_opened` event."""

    user: Id
    tab: str = ""
    channel: str = ""


class _View(_Payload):
    id: Id
    callback_id: str
    private_metadata: Annotated[str, Field(max_length=3_000)] = ""
    state: FormState = FormState()


class Submission(_Payload):
    """A `view_submission` payload: a submitted form."""

    user: _User
    view: _View


P = TypeVar("P", bound=_Payload)


def parse(payload: type[P], body: Mapping[str, Any]) -> P:
    """Return the parsed payload. Raises MalformedInput."""
    try:
        return payload.model_validate(body)
    except ValidationError as error:
        wrong = sorted({".".join(map(str, problem["loc"]))[:MAX_FIELD] or "all" for problem in error.errors()})
        fields = ", ".join(wrong[:MAX_FIELDS_NAMED])
        raise MalformedInput(f"Slack's request is not valid at {fields}.") from None
