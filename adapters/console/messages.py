"""The stored messages of the local page, its Messenger, and wake-ups of open pages when there is something new."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Protocol

from pydantic import TypeAdapter

from core.model.conversation import MessageReference, Place
from core.model.errors import MalformedInput, MessageNotFound, Unavailable
from core.model.messages import (
    AnswerMessage,
    BadgeMessage,
    CorrectionRequest,
    DriftAlarm,
    FilingRequest,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    JoinRequest,
    Message,
    Notice,
    OwnerPing,
    OwnerQuestion,
    ProposalMessage,
)
from core.ports import Clock

_CURSOR = re.compile(r"\d{1,18}\.\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConsoleMessage:
    """A message on the local page.

    - `id`: ascending over all channels.
    - `thread`: the id of the root message that it replies to, None for a root.
    - `kind` and the JSON-compatible `payload`: the result of `payload.encode`.
    - `revision`: a counter of all changes of all messages; a reader who has seen everything up to a revision can ask
      for later ones.
    """

    id: int
    channel: str
    thread: int | None
    kind: str
    payload: Mapping[str, Any]
    at: datetime
    revision: int

    @property
    def root(self) -> int:
        """Return the id of the thread's root message, which may be this one."""
        return self.id if self.thread is None else self.thread


class ConsoleMessages(Protocol):
    """Stores the messages of the local page. Ids and revisions become visible in ascending order.

    Raises ChatUnavailable if they cannot be read or written.
    """

    async def append(
        self, channel: str, thread: int | None, kind: str, payload: Mapping[str, Any], intent: str, at: datetime
    ) -> int:
        """Store a new message and return its id.

        If there is a message with this intent, return its id and change nothing.
        """
        ...

    async def replace(self, message_id: int, kind: str, payload: Mapping[str, Any]) -> None:
        """Replace the content of a message. Raises MessageNotFound."""
        ...

    async def get(self, message_id: int) -> ConsoleMessage | None: ...

    async def find(self, intent: str) -> ConsoleMessage | None:
        """Return the message with this intent."""
        ...

    async def page(self, channel: str, limit: int, before: int | None = None) -> list[ConsoleMessage]:
        """Return the latest `limit` roots of a channel with all replies, in ascending order of id, from one snapshot.

        With `before`, only roots with a lower id.
        """
        ...

    async def changed(self, channel: str, after: int, limit: int) -> list[ConsoleMessage]:
        """Return the first `limit` messages of a channel with a revision above `after`, in ascending order of revision."""
        ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """The highest id and the highest revision that a reader has seen in a channel.

    A message with a higher id is new to the reader; one with only a higher revision was changed.
    """

    message_id: int = 0
    revision: int = 0

    def after(self, messages: Iterable[ConsoleMessage]) -> Cursor:
        """Return the cursor of a reader who has also seen these messages."""
        seen = list(messages)
        return Cursor(
            max([self.message_id, *(message.id for message in seen)]),
            max([self.revision, *(message.revision for message in seen)]),
        )

    def __str__(self) -> str:
        return f"{self.message_id}.{self.revision}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor from the result of `str`. Raises MalformedInput for anything else."""
        if not _CURSOR.fullmatch(text):
            raise MalformedInput("The position to continue from is invalid. Reload the page.")
        message_id, revision = text.split(".")
        return cls(int(message_id), int(revision))


@dataclass(frozen=True, slots=True)
class PersonMessage:
    """A message that a person wrote on the page. Untrusted."""

    name: str
    text: str


Content = PersonMessage | Message

KINDS: dict[str, type[Content]] = {
    "person": PersonMessage,
    "answer": AnswerMessage,
    "incident": IncidentMessage,
    "details": IncidentDetails,
    "correction request": CorrectionRequest,
    "handover request": HandoverRequest,
    "join request": JoinRequest,
    "filing request": FilingRequest,
    "proposal": ProposalMessage,
    "badge": BadgeMessage,
    "ping": OwnerPing,
    "owner question": OwnerQuestion,
    "drift": DriftAlarm,
    "notice": Notice,
}
_NAMES = {content: kind for kind, content in KINDS.items()}


def encode(content: Content) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message, and a JSON-compatible payload."""
    kind = _NAMES[type(content)]
    return kind, _adapter(kind).dump_python(content, mode="json")


def decode(kind: str, payload: Mapping[str, Any]) -> Content:
    """Return the content that `encode` was given."""
    return _adapter(kind).validate_python(payload)


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[kind])


DELETED = "This message was deleted."


class ConsoleMessenger:
    """Implements `core.ports.Messenger`. A post is a row in the store, so `find` is exact."""

    def __init__(self, messages: ConsoleMessages, live: Live, clock: Clock) -> None:
        self._messages = messages
        self._live = live
        self._clock = clock

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        thread = None if place.thread is None else await self._root(place)
        kind, payload = encode(message)
        message_id = await self._messages.append(place.channel, thread, kind, payload, intent, self._clock.now())
        self._live.notify()
        return MessageReference(place, str(message_id))

    async def edit(self, reference: MessageReference, message: Message) -> None:
        kind, payload = encode(message)
        await self._messages.replace(_number(reference.message_id), kind, payload)
        self._live.notify()

    async def delete(self, reference: MessageReference) -> None:
        """Replace the message with a note that it was deleted, because open pages would not notice its removal."""
        with suppress(MessageNotFound):
            await self.edit(reference, Notice(DELETED))

    async def link(self, reference: MessageReference) -> str:
        """Return an empty address: the page itself links to the incident of a message."""
        return ""

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        message = await self._messages.find(intent)
        return None if message is None else MessageReference(place, str(message.id))

    async def _root(self, place: Place) -> int:
        message = await self._messages.get(_number(place.thread or ""))
        if message is None or message.channel != place.channel:
            raise _missing(place.thread)
        return message.root


def _number(message_id: str) -> int:
    if not (message_id.isascii() and message_id.isdigit() and len(message_id) <= 18):
        raise _missing(message_id)
    return int(message_id)


def _missing(message_id: str | None) -> MessageNotFound:
    return MessageNotFound(f"The local page has no message {message_id}: it was deleted, or never posted here.")


MAX_READERS = 200  # open pages updated at once
RECONNECT_AFTER = 5.0  # seconds before a refused page reconnects


class PageReader:
    """An open page. Wake-ups during its work are merged, and it reads the changes itself."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self.closed = False

    def wake(self) -> None:
        self._news.set()

    def close(self) -> None:
        self.closed = True
        self._news.set()

    async def news(self, patience: float) -> None:
        """Return at the next wake-up (at once if there was one since the last), or after `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()


class Live:
    """All open pages of this process. No messages are held; a page that was disconnected reads the store."""

    def __init__(self) -> None:
        self._readers: set[PageReader] = set()

    def notify(self) -> None:
        """Wake all pages."""
        for reader in self._readers:
            reader.wake()

    @contextmanager
    def reader(self) -> Iterator[PageReader]:
        """Register a page until the block ends. Raises Unavailable if there are too many."""
        if len(self._readers) >= MAX_READERS:
            raise Unavailable(f"{MAX_READERS} pages are already open. Close one and reload this page.", RECONNECT_AFTER)
        reader = PageReader()
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        """Disconnect all pages, so that the process can end; browsers reconnect on their own."""
        for reader in self._readers:
            reader.close()
