"""Wake-ups of open pages when there is something new."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from core.model.errors import Unavailable

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
