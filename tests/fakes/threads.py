"""Threads of a chat in memory."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from core.model.conversation import Place, Turn
from core.model.errors import ChatUnavailable


class FakeThreads:
    """Implements `core.ports.ThreadReader`. `down` makes it raise, as a platform does that does not answer."""

    def __init__(self) -> None:
        self.said: defaultdict[Place, list[tuple[datetime, Turn]]] = defaultdict(list)
        self.down = False

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        if self.down:
            raise ChatUnavailable("The platform is down.")
        if place.thread is None:
            return ()
        turns = [turn for at, turn in self.said[place] if at < before]
        return tuple(turns if len(turns) <= limit else [turns[0], *turns[len(turns) - limit + 1 :]])
