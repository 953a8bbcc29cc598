"""A messenger that counts, times and traces the calls of another one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from bot.observability.telemetry import POSTS, timed
from bot.observability.tracing import span
from core.model.conversation import MessageReference, Place, Platform
from core.model.messages import Message
from core.ports import Messenger, SignallingMessenger


class MeasuredMessenger:
    """Implements `core.ports.Messenger` and `SignallingMessenger` by delegation."""

    def __init__(self, platform: Platform, messenger: Messenger) -> None:
        self._platform = platform
        self._messenger = messenger

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        with self._measured("post"):
            return await self._messenger.post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        with self._measured("edit"):
            await self._messenger.edit(reference, message)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        with self._measured("find"):
            return await self._messenger.find(place, intent)

    async def delete(self, reference: MessageReference) -> None:
        with self._measured("delete"):
            await self._messenger.delete(reference)

    async def link(self, reference: MessageReference) -> str:
        return await self._messenger.link(reference)

    async def signal(self, place: Place, text: str) -> bool:
        return isinstance(self._messenger, SignallingMessenger) and await self._messenger.signal(place, text)

    @contextmanager
    def _measured(self, call: str) -> Generator[None]:
        with span(f"{self._platform} {call}"), timed(POSTS, self._platform, call):
            yield
