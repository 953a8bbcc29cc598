"""The messages of the local page, as they are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from core.model.errors import MalformedInput

_CURSOR = re.compile(r"\d{1,18}\.\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConsoleMessage:
    """One message on the local page.

    `id` counts up over all channels. `thread` is the id of the root message that this one replies to, None for a root.
    `kind` and the JSON-compatible `payload` are what `payload.encode` made. `revision` counts every change of any
    message, so that a reader who has seen everything up to a revision can ask for what came after it.
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
        """The id of the message that the thread hangs on: this one's own, if it is a root."""
        return self.id if self.thread is None else self.thread


class ConsoleMessages(Protocol):
    """Keeps the messages of the local page. Ids and revisions become visible in ascending order.

    Raises ChatUnavailable when they cannot be read or written.
    """

    async def append(
        self, channel: str, thread: int | None, kind: str, payload: Mapping[str, Any], intent: str, at: datetime
    ) -> int:
        """Keep a new message and return its id; if a message of this intent is there, return its id and do nothing."""
        ...

    async def replace(self, message_id: int, kind: str, payload: Mapping[str, Any]) -> None:
        """Change what a message says. Raises MessageNotFound."""
        ...

    async def get(self, message_id: int) -> ConsoleMessage | None: ...

    async def find(self, intent: str) -> ConsoleMessage | None:
        """The message that was appended for this intent."""
        ...

    async def page(self, channel: str, limit: int, before: int | None = None) -> list[ConsoleMessage]:
        """The latest `limit` roots of a channel with all their replies, in ascending order of id, as of one moment.

        With `before`, the latest roots whose id is below it.
        """
        ...

    async def changed(self, channel: str, after: int, limit: int) -> list[ConsoleMessage]:
        """The first `limit` messages of a channel with a revision above `after`, in ascending order of revision."""
        ...

    async def latest(self) -> Mapping[str, int]:
        """Channel → the highest id in it, for every channel that has a message."""
        ...


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a reader has come: the highest id and the highest revision that it has seen in a channel.

    A message with a higher id is new to this reader; one with a higher revision alone was changed.
    """

    message_id: int = 0
    revision: int = 0

    def after(self, messages: Iterable[ConsoleMessage]) -> Cursor:
        """The cursor of a reader who has seen these as well."""
        seen = list(messages)
        return Cursor(
            max([self.message_id, *(message.id for message in seen)]),
            max([self.revision, *(message.revision for message in seen)]),
        )

    def __str__(self) -> str:
        return f"{self.message_id}.{self.revision}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Raises MalformedInput for anything but what `str` made."""
        if not _CURSOR.fullmatch(text):
            raise MalformedInput("The position to continue from is not known. Reload the page.")
        message_id, revision = text.split(".")
        return cls(int(message_id), int(revision))
