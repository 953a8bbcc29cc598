"""The parts of Slack's payloads that we read. Unknown fields are ignored; a missing one is MalformedInput."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.errors import MalformedInput

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
    """The shape that every payload has as far as Bolt looks into it: Bolt does not expect another one."""

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
            raise ValueError(f"a payload of type {self.type} lacks its part")
        return self


class MessageEvent(_Payload):
    """An `app_mention` or `message` event."""

    channel: Id
    ts: Timestamp
    user: Id | None = None
    text: str = ""
    thread_ts: Timestamp | None = None
    channel_type: str = ""
    subtype: str | None = None
    bot_id: str | None = None


class _Message(_Payload):
    ts: Timestamp
    thread_ts: Timestamp | None = None


class DeletionEvent(_Payload):
    """A `message` event of the subtype `message_deleted`."""

    channel: Id
    deleted_ts: Timestamp
    previous_message: _Message | None = None


class SlashCommand(_Payload):
    channel_id: Id
    user_id: Id
    trigger_id: Id
    text: str = ""
    user_name: str = ""


class _User(_Payload):
    id: Id
    name: str = ""
    username: str = ""


class _Channel(_Payload):
    id: Id


class _Action(_Payload):
    action_id: str
    value: Annotated[str, Field(min_length=1)]
    action_ts: Timestamp


class _Option(_Payload):
    value: Annotated[str, Field(max_length=150)]


class _Field(_Payload):
    selected_option: _Option | None = None
    value: Annotated[str, Field(max_length=10_000)] | None = None


class _State(_Payload):
    values: dict[str, dict[str, _Field]] = {}


class ButtonPress(_Payload):
    """A `block_actions` payload of a button in a message."""

    user: _User
    channel: _Channel
    message: _Message
    state: _State = _State()
    actions: Annotated[list[_Action], Field(min_length=1, max_length=1)]

    @property
    def action(self) -> _Action:
        return self.actions[0]

    def typed(self, field: str) -> str:
        """What stands in a field of the message, empty if it has none."""
        return self.state.values.get(field, {}).get(field, _Field()).value or ""

    def picked(self, field: str) -> str:
        """The value that was picked in a field of the message, empty if none was."""
        option = self.state.values.get(field, {}).get(field, _Field()).selected_option
        return option.value if option else ""


P = TypeVar("P", bound=_Payload)


def parse(payload: type[P], body: Mapping[str, Any]) -> P:
    """Raises MalformedInput."""
    try:
        return payload.model_validate(body)
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, problem["loc"])) or "all" for problem in error.errors()}))
        raise MalformedInput(f"Slack's request cannot be understood: look at {fields}.") from None
