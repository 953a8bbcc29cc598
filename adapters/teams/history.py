"""The history of a conversation through Microsoft Graph, and the threads and files that are read from it.

https://learn.microsoft.com/graph/api/channel-list-messages · https://learn.microsoft.com/graph/api/chat-list-messages

It needs the consent of a team or a group chat (ChannelMessage.Read.Group, ChatMessage.Read.Chat), which is requested
when the app is added there. Without it, and in personal chats, nothing can be read.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/bots-filesv4
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import aiohttp
import structlog
from pydantic import ValidationError
from yarl import URL

from adapters.chat import MAX_FILES, is_text, text_of_file
from adapters.http import Gone, Http, Refused, Retries, TryAgain, source_server
from adapters.microsoft import RESOURCE, AppToken, GraphMessage, Login, text_of
from adapters.teams.activity import clean
from adapters.teams.connector import (
    NEVER_MET,
    Cloud,
    Connector,
    ConversationReference,
    ConversationReferences,
    TeamGroups,
    home_of,
)
from adapters.teams.elements import ADAPTIVE_CARD, MAX_NAME, Card, Element
from core.model.conversation import Place, SharedFile, Speaker, Turn
from core.model.errors import ChatClosed, ChatUnavailable, MessageNotFound, PlumblineError, SourceUnavailable
from core.ports import Clock

PAGE = "50"  # messages per response; the maximum of Graph
MAX_PAGES = 5  # of one conversation
RETRIES = Retries(attempts=2, longest_pause=2.0)  # few, because a person waits
CLOSED_FOR = timedelta(minutes=10)  # after which a conversation without consent is tried again
CLOSED = frozenset({401, 403})

NO_CONSENT = (
    "Microsoft Graph does not show the messages of {place} (HTTP {status}), because the consent {permission} is missing. "
    "Make the package again with `plumbline teams-package`, upload it, and add the app there again: an owner or member is asked for it."
)
NO_TEAM = "The team of the channel {place} is not known: mention the bot there once."
NO_THREADS = "Chats in Teams have no threads."
PERSONAL = "Microsoft Graph does not let apps read personal chats."

log = structlog.get_logger()


class Unreadable(PlumblineError):
    """Microsoft Graph does not show the messages of a Teams conversation, until somebody grants the permission."""


@dataclass(frozen=True, slots=True)
class _Conversation:
    """A conversation.

    `address` is that of its messages in Graph; `permission` allows reading them. Only channels have threads.
    """

    server: Http
    address: str
    permission: str
    is_channel: bool


class TeamsHistory:
    """Reads the newest messages of a conversation.

    Every call raises Unreadable, MessageNotFound if the thread or the conversation is gone, or ChatUnavailable.
    """

    def __init__(
        self,
        *,
        app_id: str,
        login: Callable[[str], Login],
        tenant_ids: frozenset[str],
        references: ConversationReferences,
        connector: Connector,
        cloud: Cloud,
        clock: Clock,
        session: aiohttp.ClientSession,
    ) -> None:
        """Create the reader.

        `login` returns the way to a token in a tenant; `tenant_ids` are the served tenants, empty for all.
        """
        self.app_id = app_id
        self._login = login
        self._tenant_ids = tenant_ids
        self._references = references
        self._groups = TeamGroups(references, connector)
        self._cloud = cloud
        self._clock = clock
        self._session = session
        self._graphs: dict[str, Http] = {}
        self._closed: dict[str, tuple[datetime, str]] = {}

    async def root(self, place: Place) -> GraphMessage | None:
        """Return the first message of the thread at `place`; None if it cannot be parsed."""
        conversation = await self._conversation(place)
        if not conversation.is_channel:
            raise Unreadable(NO_THREADS)
        answer = await self._get(place, conversation, f"{conversation.address}/{quote(place.thread or '', safe='')}")
        return next(valid_messages([answer]), None)

    async def newest(self, place: Place) -> AsyncIterator[list[GraphMessage]]:
        """Yield the messages of a chat or channel, or the replies of a thread, page by page, newest first.

        For a channel, they are the first messages of threads, with their newest replies. At most MAX_PAGES are read.
        """
        conversation = await self._conversation(place)
        parameters = {"$top": PAGE}
        address = conversation.address
        if not conversation.is_channel:
            parameters["$orderby"] = "createdDateTime desc"
        elif place.thread is not None and place.thread != place.channel:
            address = f"{address}/{quote(place.thread, safe='')}/replies"
        else:
            parameters["$expand"] = "replies"
        answer = await self._get(place, conversation, address, parameters)
        for page in range(1, MAX_PAGES + 1):
            yield list(valid_messages(answer.get("value") or ()))
            following = answer.get("@odata.nextLink")
            if not following or page == MAX_PAGES:
                return
            answer = await self._get(place, conversation, str(following))

    async def _conversation(self, place: Place) -> _Conversation:
        home = await home_of(self._references, place, self._tenant_ids, self._cloud)
        if home is None:
            raise Unreadable(NEVER_MET.format(channel=place.channel))
        if not home.threaded and (home.personal or not place.channel.startswith("19:")):
            raise Unreadable(PERSONAL)
        channel = quote(place.channel, safe=":@")
        if not home.threaded:
            return _Conversation(self._graph(home), f"chats/{channel}/messages", "ChatMessage.Read.Chat", False)
        try:
            group = await self._groups.of(place.channel, home)
        except ChatClosed as error:
            raise Unreadable(str(error)) from None
        if not group:
            raise Unreadable(NO_TEAM.format(place=place.channel))
        address = f"teams/{quote(group, safe='')}/channels/{channel}/messages"
        return _Conversation(self._graph(home), address, "ChannelMessage.Read.Group", True)

    def _graph(self, home: ConversationReference) -> Http:
        """Return the client of Graph with the app's token for the conversation's own tenant."""
        tenant = home.tenant_id
        if tenant not in self._graphs:
            credentials = AppToken(self._login(quote(tenant, safe="")), RESOURCE, self._session)
            self._graphs[tenant] = source_server(
                "Microsoft Graph", self._cloud.graph_url, self._session, credentials, RETRIES
            )
        return self._graphs[tenant]

    async def _get(
        self, place: Place, conversation: _Conversation, address: str, parameters: dict[str, str] | None = None
    ) -> dict[str, Any]:
        now = self._clock.now()
        until, reason = self._closed.get(conversation.address, (now, ""))
        if now < until:
            raise Unreadable(reason)
        try:
            return await conversation.server.get(address, parameters)
        except TryAgain as error:
            raise ChatUnavailable(str(error), error.retry_after) from None
        except Gone:
            raise MessageNotFound("Microsoft Graph has no such conversation or message, or it was deleted.") from None
        except Refused as error:
            if error.status not in CLOSED:
                raise Unreadable(str(error)) from None
            # The refusal is remembered for a while, so that it is not requested repeatedly.
            reason = NO_CONSENT.format(place=place.channel, status=error.status, permission=conversation.permission)
            self._closed[conversation.address] = self._clock.now() + CLOSED_FOR, reason
            log.warning("teams conversation cannot be read", place=place.channel, reason=reason)
            raise Unreadable(reason) from None
        except SourceUnavailable as error:
            raise Unreadable(str(error)) from None


def valid_messages(values: Iterable[Any]) -> Iterator[GraphMessage]:
    for value in values:
        try:
            yield GraphMessage.model_validate(value)
        except ValidationError as error:
            log.info("teams message left out", reason=str(error.errors()[0]["msg"]))


LENGTH = 32  # hexadecimal digits of an intent's digest


def marked(card: Card, intent: str) -> Card:
    """Return the card with its intent as the id of an element without an id."""
    body: list[Element] = list(card.content["body"])
    place = next(index for index, element in enumerate(body) if "id" not in element)
    body[place] = body[place] | {"id": _mark(intent)}
    return replace(card, content=card.content | {"body": body})


def is_for(message: GraphMessage, intent: str, app_id: str) -> bool:
    """Return whether this app posted the message for this intent.

    A card with the same id from another sender is not ours. Text with the id in one of our cards does not match: in
    JSON text, every quotation mark is preceded by a backslash.
    """
    cards = (each.content for each in message.attachments or () if each.contentType == ADAPTIVE_CARD)
    element = re.compile(rf'"id"\s*:\s*"{_mark(intent)}"')
    return message.application_id == app_id and any(element.search(str(card)) for card in cards)


def _mark(intent: str) -> str:
    """Return a digest of fixed length, because an intent may be long and contain untrusted text."""
    return f"plumbline-{hashlib.sha256(intent.encode()).hexdigest()[:LENGTH]}"


SEARCH_DEADLINE = 10.0  # seconds per search, because the post waits for it
LOOKED_BACK = timedelta(days=7)  # a process that was down for longer posts again
GRAPH_OUTAGE_LIMIT = timedelta(
    minutes=1
)  # while Graph does not answer; after that, a duplicate is preferred to no post
MAX_DOUBTS = 10_000  # unsuccessful searches remembered; further ones do not wait


class PostedMessages:
    """Searches for our posts with Microsoft Graph.

    A channel is roughly sorted by the last reply in each thread, so only a page that is too old as a whole ends the
    search.
    """

    def __init__(self, history: TeamsHistory, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._doubts: dict[str, datetime] = {}

    async def find(self, place: Place, intent: str) -> str | None:
        """Return the id of the message posted for this intent; None if there is none, or Graph cannot tell.

        Raises ChatUnavailable while Graph does not answer, for at most GRAPH_OUTAGE_LIMIT.
        """
        try:
            async with asyncio.timeout(SEARCH_DEADLINE):
                message_id = await self._search(place, intent)
        except MessageNotFound:
            message_id = None
        except Unreadable as error:
            log.info("teams cannot tell whether a message was posted", place=place.channel, reason=str(error))
            message_id = None
        except TimeoutError:
            return self._in_doubt(place, intent, ChatUnavailable("Microsoft Graph takes too long to answer."))
        except ChatUnavailable as error:
            return self._in_doubt(place, intent, error)
        self._doubts.pop(intent, None)
        return message_id

    async def _search(self, place: Place, intent: str) -> str | None:
        oldest = self._clock.now() - LOOKED_BACK
        async for page in self._history.newest(place):
            for message in page:
                if message.is_said and is_for(message, intent, self._history.app_id):
                    return message.id
            if page and all(message.createdDateTime < oldest for message in page):
                break
        return None

    def _in_doubt(self, place: Place, intent: str, error: ChatUnavailable) -> None:
        now = self._clock.now()
        left = (self._doubts.setdefault(intent, now) + GRAPH_OUTAGE_LIMIT - now).total_seconds()
        if left > 0 and len(self._doubts) <= MAX_DOUBTS:
            wish = error.retry_after  # may be an hour, which a message must not wait
            raise ChatUnavailable(str(error), None if wish is None else min(wish, left))
        del self._doubts[intent]
        log.warning("teams message may be posted twice", place=place.channel, reason=str(error))


TOO_LONG = "Microsoft Graph takes too long to show a thread."
THREAD_DEADLINE = 5.0  # seconds, because a person waits for the answer
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
            async with asyncio.timeout(THREAD_DEADLINE):
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
