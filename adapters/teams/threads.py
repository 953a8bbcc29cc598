"""The ThreadReader of Teams channels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.microsoft_graph.messages import Attachment, ChatMessage, text_of
from adapters.teams.activity import clean
from adapters.teams.history import TeamsHistory, Unreadable
from core.model.conversation import Place, Speaker, Turn
from core.model.errors import ChatUnavailable, MessageNotFound
from core.ports import Clock

TOO_LONG = "Microsoft Graph takes too long to show a thread."
DEADLINE = 5.0  # seconds, because a person waits for the answer
SILENCE = timedelta(minutes=1)  # pause after a timeout of Graph
MAX_MARKUP = 5_000  # characters of a message's HTML


class TeamsThreads:
    """Implements `core.ports.ThreadReader`.

    A chat does not count as a thread, because people added later may not see earlier messages. Without consent, a thread
    is empty.
    """

    def __init__(self, history: TeamsHistory, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._silent_until = datetime.min.replace(tzinfo=UTC)

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        if place.thread is None or place.thread == place.channel:
            return ()
        if self._clock.now() < self._silent_until:
            raise ChatUnavailable(TOO_LONG)
        try:
            async with asyncio.timeout(DEADLINE):
                root = await self._history.root(place)
                replies = await self._replies(place, before, limit)
                began = [root] if root and root.is_said and root.createdDateTime < before else []
                # Takes up to a second for messages that consist mainly of tags.
                return await asyncio.to_thread(self._turns, [*began, *replies[-limit + len(began) :]])
        except (MessageNotFound, Unreadable):
            return ()
        except TimeoutError:
            self._silent_until = self._clock.now() + SILENCE
            raise ChatUnavailable(TOO_LONG) from None

    async def _replies(self, place: Place, before: datetime, limit: int) -> list[ChatMessage]:
        """Return the latest replies before a time, oldest first: `limit` of them, or all if there are fewer."""
        replies: list[ChatMessage] = []
        async for page in self._history.newest(place):
            replies += [reply for reply in page if reply.is_said and reply.createdDateTime < before]
            if len(replies) >= limit:
                break
        return sorted(replies, key=lambda reply: reply.createdDateTime)[-limit:]

    def _turns(self, messages: Sequence[ChatMessage]) -> tuple[Turn, ...]:
        turns = [self._turn(message) for message in messages]
        return tuple(turn for turn in turns if turn.text)

    def _turn(self, message: ChatMessage) -> Turn:
        is_own = message.application_id == self._history.app_id
        said = text_of(_beginning(message), self._history.app_id) or card_text(message.attachments or ())
        return Turn(Speaker.PLUMBLINE if is_own else Speaker.PERSON, clean(said))


def _beginning(message: ChatMessage) -> ChatMessage:
    content = message.body.content or ""
    if len(content) <= MAX_MARKUP:
        return message
    head = content[:MAX_MARKUP]
    begun = head.rfind("<")
    whole = head[:begun] if begun > head.rfind(">") else head
    return message.model_copy(update={"body": message.body.model_copy(update={"content": whole})})


CARD = "application/vnd.microsoft."  # prefix of the content type of every card
READ = ("title", "subtitle", "activityTitle", "activitySubtitle", "text", "name", "value")  # in this order
CHILDREN = ("columns", "rows", "cells", "items", "facts", "sections", "body")
MAX_SIZE = 100_000  # characters of a card; Teams accepts about 28 KB
MAX_DEPTH = 20


def card_text(attachments: Iterable[Attachment]) -> str:
    """Return the texts of the cards, one per line, without buttons."""
    lines: list[str] = []
    for attachment in attachments:
        if (attachment.contentType or "").startswith(CARD) and isinstance(attachment.content, str):
            try:
                lines += _texts(json.loads(attachment.content[:MAX_SIZE]), MAX_DEPTH)
            except (ValueError, RecursionError):
                continue
    return "\n".join(lines)


def _texts(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element, dict) or not depth or element.get("isVisible") is False or _is_input(element):
        return
    own = [element[name].strip() for name in READ if isinstance(element.get(name), str)]
    own += ["".join(map(_run, _list(element.get("inlines")))).strip()]
    if said := " ".join(filter(None, own)):
        yield said
    for name in CHILDREN:
        for child in _list(element.get(name)):
            yield from _texts(child, depth - 1)


def _is_input(element: dict[str, Any]) -> bool:
    return str(element.get("type")).startswith("Input.")


def _run(run: Any) -> str:
    """Return a part of a line, with its spaces."""
    return str(run.get("text") or "") if isinstance(run, dict) else str(run)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
