"""What was said in a thread of a Teams channel."""

from __future__ import annotations

import asyncio
from datetime import datetime

from adapters.sources.teams_messages import ChatMessage, text_of
from adapters.teams.activity import clean
from adapters.teams.card_text import card_text
from adapters.teams.history import TeamsHistory, Unreadable
from core.conversation import Place, Speaker, Turn
from core.errors import ChatUnavailable, MessageNotFound

DEADLINE = 5.0  # seconds: somebody waits for an answer


class TeamsThreads:
    """Implements `core.ports.ThreadReader`.

    A chat is no thread: whoever was added to it later may not be shown what was said before. A thread that may not be read,
    for want of consent, is empty.
    """

    def __init__(self, history: TeamsHistory) -> None:
        self._history = history

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        if place.thread is None or place.thread == place.channel:
            return ()
        try:
            async with asyncio.timeout(DEADLINE):
                root = await self._history.root(place)
                replies = await self._replies(place, before, limit)
        except (MessageNotFound, Unreadable):
            return ()
        except TimeoutError:
            raise ChatUnavailable("Microsoft Graph takes too long to show a thread.") from None
        began = [self._turn(root)] if root and root.is_said and root.createdDateTime < before else []
        turns = [*began, *map(self._turn, replies[-limit + len(began) :])]
        return tuple(turn for turn in turns if turn.text)

    async def _replies(self, place: Place, before: datetime, limit: int) -> list[ChatMessage]:
        """The latest of the replies before that time, oldest first: `limit` of them or, if there are fewer, all."""
        replies: list[ChatMessage] = []
        async for page in self._history.newest(place):
            replies += [reply for reply in page if reply.is_said and reply.createdDateTime < before]
            if len(replies) >= limit:
                break
        return sorted(replies, key=lambda reply: reply.createdDateTime)[-limit:]

    def _turn(self, message: ChatMessage) -> Turn:
        is_own = message.application_id == self._history.app_id
        said = text_of(message, self._history.app_id) or card_text(message.attachments or ())
        return Turn(Speaker.PLUMBLINE if is_own else Speaker.PERSON, clean(said))
