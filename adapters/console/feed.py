"""Server-sent events for an open page, with rendered HTML."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from adapters.console.console import Console
from adapters.console.live import PageReader
from adapters.console.messages import ConsoleMessage, Cursor, decode
from adapters.console.render import fingerprint
from core.model.conversation import Platform

TICK = 10.0  # seconds between events without news, which also keeps the connection alive
SETTLE = 0.05  # seconds in which changes of a burst are collected
MAX_CHANGES = 200  # messages sent one by one; a page that missed more is reloaded


class Feed:
    """Follows a channel and the list of incidents; without a channel, only the incidents."""

    def __init__(self, console: Console, channel: str | None, cursor: Cursor, incidents: str) -> None:
        """Create the feed. `incidents` is the fingerprint of the list that the page shows."""
        self._console = console
        self._channel = channel
        self._cursor = cursor
        self._incidents = incidents
        self._latest: Mapping[str, int] | None = None

    async def events(self, reader: PageReader) -> AsyncIterator[bytes]:
        """Yield the changes each time the reader is woken, until it is closed."""
        while not reader.closed:
            yield b"".join([event async for event in self._news()]) or b": nothing new\n\n"
            await reader.news(TICK)
            await asyncio.sleep(SETTLE)

    async def _news(self) -> AsyncIterator[bytes]:
        if self._channel is not None:
            changed = await self._console.messages.changed(self._channel, self._cursor.revision, MAX_CHANGES)
            if changed:
                yield await self._changes(self._channel, changed)
            if marks := await self._unread(self._channel):
                yield event("message", marks)
        incidents = await self._console.recent_incidents()
        if (state := fingerprint(incidents)) != self._incidents:
            self._incidents = state
            yield event("incidents", self._console.renderer.fragment("_sidebar.html", "open_incidents", incidents))

    async def _changes(self, channel: str, changed: list[ConsoleMessage]) -> bytes:
        if len(changed) == MAX_CHANGES:
            latest = await self._console.messages.page(channel, MAX_CHANGES)
            self._cursor = self._cursor.after([*changed, *latest])
            return event("reload", "", str(self._cursor))
        labels = await self._console.labels()
        fragments = [
            self._console.renderer.fragment(
                "_message.html",
                "update",
                message,
                decode(message.kind, message.payload),
                labels,
                message.id > self._cursor.message_id,
            )
            for message in sorted(changed, key=lambda message: message.id)
        ]
        self._cursor = self._cursor.after(changed)
        # One event for all changes, so that a broken connection delivers all or none.
        return event("message", "".join(fragments), str(self._cursor))

    async def _unread(self, channel: str) -> str:
        """Return the marks of other channels with new messages since the page was opened."""
        before, self._latest = self._latest, await self._console.messages.latest()
        if before is None:
            return ""
        latest = self._latest
        ids = [each.ids[Platform.CONSOLE] for each in self._console.channels]
        return "".join(
            self._console.renderer.fragment("_sidebar.html", "unread", position)
            for position, name in enumerate(ids)
            if name != channel and latest.get(name, 0) > before.get(name, 0)
        )


def event(name: str, data: str, event_id: str = "") -> bytes:
    """Return a server-sent event. The browser sends the id back when it reconnects."""
    lines = [f"event: {name}", *([f"id: {event_id}"] if event_id else [])]
    lines += [f"data: {line}" for line in data.splitlines() or [""]]
    return ("\n".join(lines) + "\n\n").encode()
