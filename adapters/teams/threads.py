"""The ThreadReader of Teams channels, and the FileReader: text files that a person sends to the bot in a personal chat.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/bots-filesv4
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from yarl import URL

from adapters.microsoft_graph.messages import GraphMessage, text_of
from adapters.shared_files import MAX_FILES, is_text, text_of_file
from adapters.teams.activity import clean
from adapters.teams.history import TeamsHistory, Unreadable
from core.model.conversation import Place, SharedFile, Speaker, Turn
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

    async def _replies(self, place: Place, before: datetime, limit: int) -> list[GraphMessage]:
        """Return the latest replies before a time, oldest first: `limit` of them, or all if there are fewer."""
        replies: list[GraphMessage] = []
        async for page in self._history.newest(place):
            replies += [reply for reply in page if reply.is_said and reply.createdDateTime < before]
            if len(replies) >= limit:
                break
        return sorted(replies, key=lambda reply: reply.createdDateTime)[-limit:]

    def _turns(self, messages: Sequence[GraphMessage]) -> tuple[Turn, ...]:
        app_id = self._history.app_id
        turns = [
            Turn(
                Speaker.PLUMBLINE if message.application_id == app_id else Speaker.PERSON,
                clean(text_of(_beginning(message), app_id)),
            )
            for message in messages
        ]
        return tuple(turn for turn in turns if turn.text)


def _beginning(message: GraphMessage) -> GraphMessage:
    content = message.body.content or ""
    if len(content) <= MAX_MARKUP:
        return message
    head = content[:MAX_MARKUP]
    begun = head.rfind("<")
    whole = head[:begun] if begun > head.rfind(">") else head
    return message.model_copy(update={"body": message.body.model_copy(update={"content": whole})})


DOWNLOAD = "application/vnd.microsoft.teams.file.download.info"
HOSTS = (".sharepoint.com", ".sharepoint.us", ".sharepoint-mil.us")
MAX_NAME = 80  # characters


class TeamsFiles:
    """Implements `core.ports.FileReader`. Teams gives each file an address that needs no token and expires."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def text(self, file: SharedFile) -> str:
        if not is_sharepoint(file.url):
            raise ChatUnavailable("it is not on SharePoint")
        return await text_of_file(self._session, file)


def is_sharepoint(address: str) -> bool:
    """Return whether this is the address of a file on SharePoint, and of no other host that the bot could be led to."""
    try:
        url = URL(address)
    except ValueError:
        return False
    return url.scheme == "https" and url.port == 443 and (url.host or "").endswith(HOSTS)


def shared_files(attachments: tuple[Any, ...]) -> tuple[SharedFile, ...]:
    """Return the text files among the attachments of a message. Untrusted."""
    return tuple(_texts(attachments))[:MAX_FILES]


def _texts(attachments: tuple[Any, ...]) -> Iterator[SharedFile]:
    for each in attachments:
        if not isinstance(each, dict) or each.get("contentType") != DOWNLOAD:
            continue
        name, content = each.get("name"), each.get("content")
        url = content.get("downloadUrl") if isinstance(content, dict) else None
        if isinstance(name, str) and isinstance(url, str) and is_text(name):
            yield SharedFile(name[:MAX_NAME], url)
