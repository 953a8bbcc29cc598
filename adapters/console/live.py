"""Wakes the open pages when there is something new for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from core.model.errors import Unavailable

MAX_READERS = 200  # open pages that are kept up to date at once
RECONNECT_AFTER = 5.0  # seconds that a refused page waits


class Reader:
    """One open page. News that come while it is busy are one wake-up: it looks for itself what has changed."""

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
    """Every page that is open in this process. It holds no message: a page that was away asks the store."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()

    def notify(self) -> None:
        """Something on some page has changed."""
        for reader in self._readers:
            reader.wake()

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A page for as long as it is open. Raises Unavailable when there are too many."""
        if len(self._readers) >= MAX_READERS:
            raise Unavailable(f"{MAX_READERS} pages are already open. Close one and reload this page.", RECONNECT_AFTER)
        reader = Reader()
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def close(self) -> None:
        """Let every page go, so that the process can end; browsers come back by themselves."""
        for reader in self._readers:
            reader.close()
