"""The messages of the local page, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.console.messages import ConsoleMessage
from core.model.errors import MessageNotFound


class InMemoryConsoleMessages:
    """Implements `adapters.console.messages.ConsoleMessages`. `broken` is raised by the next write."""

    def __init__(self) -> None:
        self.broken: Exception | None = None
        self._messages: dict[int, ConsoleMessage] = {}
        self._intents: dict[str, int] = {}
        self._revision = 0

    async def append(
        self, channel: str, thread: int | None, kind: str, payload: Mapping[str, Any], intent: str, at: datetime
    ) -> int:
        self._fail_if_broken()
        if intent in self._intents:
            return self._intents[intent]
        self._revision += 1
        message = ConsoleMessage(self._revision, channel, thread, kind, payload, at, self._revision)
        self._messages[message.id] = message
        self._intents[intent] = message.id
        return message.id

    async def replace(self, message_id: int, kind: str, payload: Mapping[str, Any]) -> None:
        self._fail_if_broken()
        if message_id not in self._messages:
            raise MessageNotFound(f"There is no message {message_id}.")
        self._revision += 1
        self._messages[message_id] = replace(
            self._messages[message_id], kind=kind, payload=payload, revision=self._revision
        )

    async def get(self, message_id: int) -> ConsoleMessage | None:
        return self._messages.get(message_id)

    async def find(self, intent: str) -> ConsoleMessage | None:
        return self._messages.get(self._intents.get(intent, 0))

    async def page(self, channel: str, limit: int, before: int | None = None) -> list[ConsoleMessage]:
        here = [message for message in self._messages.values() if message.channel == channel]
        roots = [m.id for m in here if m.thread is None and (before is None or m.id < before)][-limit:]
        return [message for message in here if message.root in roots]

    async def changed(self, channel: str, after: int, limit: int) -> list[ConsoleMessage]:
        found = [m for m in self._messages.values() if m.channel == channel and m.revision > after]
        return sorted(found, key=lambda message: message.revision)[:limit]

    def all(self) -> list[ConsoleMessage]:
        return list(self._messages.values())

    def delete(self, message_id: int) -> None:
        del self._messages[message_id]

    def _fail_if_broken(self) -> None:
        if self.broken is not None:
            broken, self.broken = self.broken, None
            raise broken
