"""Models of the parts of Slack's payloads that we read. Unknown fields are ignored; missing ones are MalformedInput."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from adapters.slack.message_text import Content, Text
from core.model.conversation import Person, Platform
from core.model.errors import MalformedInput

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
    type: str = ""
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


class SessionStopped(_Payload):
    """An `agent_session_stopped` event of a thread."""

    user: Id
    channel: Id
    thread_ts: Timestamp
    event_ts: Timestamp


class HomeOpened(_Payload):
    """An `app_home_opened` event."""

    user: Id
    tab: str = ""
    channel: str = ""


class _Thread(_Payload):
    user_id: Id
    channel_id: Id
    thread_ts: Timestamp


class AssistantThread(_Payload):
    """An `assistant_thread_started` or `assistant_thread_context_changed` event."""

    assistant_thread: _Thread


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
