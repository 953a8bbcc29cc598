"""A sign of work in a personal chat, which the answer then takes the place of.

https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux: at most one update a second, and the last update
comes within two minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from adapters.teams.elements import Card, plain
from adapters.teams.sdk import StreamPhase, StreamUpdate
from adapters.teams.transport import Transport
from core.model.errors import ChatUnavailable, PlumblineError

INTERVAL = 1.0  # seconds between updates
MAX_AGE = 110.0  # seconds after which no last update is tried; the limit of Teams is 120
MAX_TEXT = 12_000  # characters that are streamed
MAX_OPEN = 500  # streams remembered
MAX_SIGN = 200  # characters of a waiting sign

log = structlog.get_logger()


@dataclass(slots=True)
class _Stream:
    id: str
    conversation: str
    sequence: int = 1
    began_at: float = field(default_factory=time.monotonic)
    sent_at: float = field(default_factory=time.monotonic)


class Streams:
    """The unfinished streams of this process. A chat is identified by its service URL and id."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        """Create the streams. `clock` returns seconds."""
        self._transport = transport
        self._clock = clock
        self._open: dict[str, _Stream] = {}

    def of(self, conversation_id: str) -> str:
        """Return the stream that shows a sign of work in this chat; empty if there is none."""
        return next((each.id for each in self._open.values() if each.conversation == conversation_id), "")

    async def signal(self, service_url: str, conversation_id: str, text: str) -> bool:
        """Show a waiting sign. Returns False if Teams does not stream here."""
        known = self._open.get(self.of(conversation_id))
        return bool(await self._show(service_url, conversation_id, known, plain(text, MAX_SIGN)))

    async def end(self, service_url: str, stream_id: str, text: str, card: Card | None) -> bool:
        """Show the whole text and the card below it. Returns False if Teams refuses; it must then be posted normally.

        Raises ChatUnavailable; the stream is then still open.
        """
        stream = self._open[stream_id]
        now = self._clock()
        if len(text) > MAX_TEXT or now - stream.began_at > MAX_AGE:
            await self.abandon(service_url, stream_id)
            return False
        await asyncio.sleep(max(stream.sent_at + INTERVAL - now, 0.0))
        update = StreamUpdate(StreamPhase.FINAL, text, stream.sequence + 1, stream.id, card)
        try:
            await self._transport.stream(service_url, stream.conversation, update)
        except ChatUnavailable:
            raise
        except PlumblineError as error:
            log.warning("teams ends no stream", reason=str(error))
            await self.abandon(service_url, stream_id)
            return False
        del self._open[stream_id]
        return True

    async def abandon(self, service_url: str, stream_id: str) -> None:
        """Remove the streamed text, as far as Teams allows."""
        stream = self._open.pop(stream_id)
        with suppress(PlumblineError):
            await self._transport.delete(service_url, stream.conversation, stream.id)

    async def _show(self, service_url: str, conversation_id: str, stream: _Stream | None, text: str) -> str:
        """Return the id of the stream; empty if Teams does not take it. Raises ChatUnavailable for a first update alone."""
        now = self._clock()
        if stream is not None and now - stream.sent_at < INTERVAL:
            return stream.id
        sequence = stream.sequence + 1 if stream is not None else 1
        update = StreamUpdate(StreamPhase.INFORMATIVE, text, sequence, stream.id if stream is not None else "")
        try:
            stream_id = await self._transport.stream(service_url, conversation_id, update)
        except PlumblineError as error:
            if stream is None and isinstance(error, ChatUnavailable):
                raise
            log.info("teams streams nothing here", reason=str(error))
            return stream.id if stream is not None else ""
        if stream is None:
            stream = self._open[stream_id] = _Stream(stream_id, conversation_id, began_at=now)
            self._forget_old()
        stream.sequence, stream.sent_at = sequence, now
        return stream_id

    def _forget_old(self) -> None:
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
