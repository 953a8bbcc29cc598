"""The Messenger of Teams, and the transport of its cards: our own, or an SDK, which is imported when it is first needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import quote

import aiohttp
import structlog

from adapters.teams.activity import THREAD_SEPARATOR
from adapters.teams.connector import AccessToken, ConnectorService, MessageTooLarge, Operation
from adapters.teams.elements import ADAPTIVE_CARD, SIZE_BUDGETS, Card, plain
from adapters.teams.history import PostedMessages, marked
from adapters.teams.references import Cloud, ConversationReference, ConversationReferences, recall
from adapters.teams.render import render, streamed
from core.model.conversation import MessageReference, Place
from core.model.errors import ChatUnavailable, ConfigurationError, MessageNotFound, PlumblineError, StoppedByPerson
from core.model.messages import Message

T = TypeVar("T")

MAX_REMEMBERED_POSTS = 1000

NEVER_MET = "The address of {channel} is not known yet. Add the app to its team, or mention the bot there once."


class TeamsMessenger:
    """Posts through the connector service that sent the last activity of a conversation.

    The connector API cannot list messages and has no idempotency keys. A post is completed even if its caller is
    cancelled, and `find` then knows it. After a crash or a lost response, an attempted post is searched for with
    Microsoft Graph; without its consent, it is posted again.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        references: ConversationReferences,
        tenant_ids: frozenset[str],
        cloud: Cloud,
        posted: PostedMessages | None = None,
    ) -> None:
        """Create the messenger.

        `tenant_ids` are the served tenants, empty for all; without `posted`, Graph is not used.
        """
        self._transport = transport
        self._references = references
        self._tenant_ids = tenant_ids
        self._cloud = cloud
        self._streams = Streams(transport)
        self._posted = posted
        self._posts: dict[str, asyncio.Task[MessageReference]] = {}
        self._intents: dict[tuple[str, str], str] = {}  # message (channel, id) → intent, which edits keep

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        task = asyncio.create_task(self._post(place, message, intent))
        self._posts.pop(intent, None)
        self._posts[intent] = task
        if len(self._posts) > MAX_REMEMBERED_POSTS:
            del self._posts[next(iter(self._posts))]
        return await asyncio.shield(task)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        place = reference.place
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread or reference.message_id, home)
        intent = self._intents.get((place.channel, reference.message_id), "")
        await _as_large_as_accepted(
            message,
            intent,
            lambda card: self._transport.update(home.service_url, conversation, reference.message_id, card),
        )

    async def signal(self, place: Place, text: str) -> float:
        home = await self._home(place)
        if not home.personal:
            return 0.0
        return await self._streams.signal(home.service_url, _conversation_id(place.channel, place.thread, home), text)

    async def delete(self, reference: MessageReference) -> None:
        place = reference.place
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread or reference.message_id, home)
        with suppress(MessageNotFound):
            await self._transport.delete(home.service_url, conversation, reference.message_id)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        if (task := self._posts.get(intent)) is not None:
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                return task.result()
        message_id = await self._posted.find(place, intent) if self._posted is not None else None
        if message_id is None:
            return None
        self._remember(place.channel, message_id, intent)
        return MessageReference(place, message_id)

    async def link(self, reference: MessageReference) -> str:
        """Return a deep link:
        https://learn.microsoft.com/microsoftteams/platform/concepts/build-and-test/deep-link-teams
        """
        channel, message = quote(reference.place.channel, safe=""), quote(reference.message_id, safe="")
        return f"https://teams.microsoft.com/l/message/{channel}/{message}"

    async def close(self) -> None:
        if self._posts:
            await asyncio.wait(self._posts.values())

    async def _post(self, place: Place, message: Message, intent: str) -> MessageReference:
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread, home)
        if home.personal and (stream_id := self._streams.of(conversation)):
            text, card = streamed(message)
            if await self._streams.end(home.service_url, stream_id, text, card):
                return MessageReference(place, stream_id)
        message_id = await _as_large_as_accepted(
            message, intent, lambda card: self._transport.send(home.service_url, conversation, card)
        )
        self._remember(place.channel, message_id, intent)
        return MessageReference(place, message_id)

    def _remember(self, channel: str, message_id: str, intent: str) -> None:
        self._intents[channel, message_id] = intent
        if len(self._intents) > MAX_REMEMBERED_POSTS:
            del self._intents[next(iter(self._intents))]

    async def _home(self, place: Place) -> ConversationReference:
        only = next(iter(self._tenant_ids), "") if len(self._tenant_ids) <= 1 else None
        home = await recall(self._references, place.channel, place.workspace or only)
        if home is None or not self._cloud.serves(home.service_url):
            raise ChatUnavailable(NEVER_MET.format(channel=place.channel))
        return home


async def _as_large_as_accepted(message: Message, intent: str, say: Callable[[Card], Awaitable[T]]) -> T:
    """Post the message as large as Teams accepts. Raises MessageTooLarge if even the smallest version is too large.

    The card is marked with its intent, unless that is empty.
    """
    for smallest in range(len(SIZE_BUDGETS)):
        with suppress(MessageTooLarge):
            # Its picture takes a second to render.
            card = await asyncio.to_thread(render, message, SIZE_BUDGETS[smallest:])
            return await say(marked(card, intent) if intent else card)
    raise MessageTooLarge("Teams refuses even the shortest form of the message.")


def _conversation_id(channel: str, thread: str | None, home: ConversationReference) -> str:
    """Return the conversation id. A message to a channel begins a thread; a chat has no threads."""
    inside = thread is not None and thread != channel and home.threaded
    return f"{channel}{THREAD_SEPARATOR}{thread}" if inside else channel


INTERVAL = 1.0  # seconds between updates
SIGN_INTERVAL = 1.2  # seconds between waiting signs, which are also told that somebody stopped the work
MAX_AGE = 110.0  # seconds after which no final update is sent; the limit of Teams is 120
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

    async def signal(self, service_url: str, conversation_id: str, text: str) -> float:
        """Show a waiting sign, and return the seconds until the next; 0.0 if Teams does not stream here.

        Raises StoppedByPerson once somebody has pressed Teams' own stop button, of which only the next sign is told.
        """
        stream = self._open.get(self.of(conversation_id))
        try:
            shown = await self._show(service_url, conversation_id, stream, plain(text, MAX_SIGN))
        except StoppedByPerson:
            if stream is not None:
                await self.abandon(service_url, stream.id)
            raise
        return SIGN_INTERVAL if shown else 0.0

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
            log.warning("teams did not end a stream", reason=str(error))
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
        """Return the id of the stream; empty if Teams refuses it. Raises ChatUnavailable only for the first update.

        Raises StoppedByPerson.
        """
        now = self._clock()
        if stream is not None and now - stream.sent_at < INTERVAL:
            return stream.id
        sequence = stream.sequence + 1 if stream is not None else 1
        update = StreamUpdate(StreamPhase.INFORMATIVE, text, sequence, stream.id if stream is not None else "")
        try:
            stream_id = await self._transport.stream(service_url, conversation_id, update)
        except StoppedByPerson:
            raise
        except PlumblineError as error:
            if stream is None and isinstance(error, ChatUnavailable):
                raise
            log.info("teams does not stream in this chat", reason=str(error))
            return stream.id if stream is not None else ""
        if stream is None:
            stream = self._open[stream_id] = _Stream(stream_id, conversation_id, began_at=now)
            while len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]
        stream.sequence, stream.sent_at = sequence, now
        return stream_id


SdkName = Literal["builtin", "botbuilder"]


class StreamPhase(StrEnum):
    """The kind of update of a streamed message: a sign of work, or all of it."""

    INFORMATIVE = "informative"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """One update of a message that is streamed into a personal chat. The first has no `stream_id`, and gets one.

    `text` is everything so far; `sequence` counts from 1. `card` is shown below the text of the last update.
    """

    phase: StreamPhase
    text: str
    sequence: int
    stream_id: str = ""
    card: Card | None = None

    @property
    def entity(self) -> dict[str, Any]:
        """Return the entity that tells Teams about the stream: https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux"""
        numbered = {"streamSequence": self.sequence} if self.phase is not StreamPhase.FINAL else {}
        identity = {"streamId": self.stream_id} if self.stream_id else {}
        return {"type": "streaminfo", "streamType": str(self.phase), **numbered, **identity}


class Sdk(Protocol):
    """A client of connector services."""

    async def call(
        self, service_url: str, token: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> str:
        """Call a connector service with the JSON of an activity, if any, and return the id in its answer; empty without one.

        Raises ChatUnavailable if it cannot be reached, and the result of `failure` for any status but success.
        """
        ...


class Transport:
    """Sends requests to connector services. The SDK is loaded with the first message, which takes a quarter of a second.

    Raises ChatUnavailable when Teams does not answer or asks to wait (408, 412, 429, 5xx), MessageNotFound for 404,
    ChatClosed when the bot may not post there (401 twice, 403), MessageTooLarge for 413, Undeliverable when it
    refuses the message.
    """

    def __init__(self, load: Callable[[], Sdk], token: AccessToken | None) -> None:
        """Open the transport. Without a token, none is sent, as the playground expects."""
        self._load = load
        self._token = token
        self._loading = asyncio.Lock()
        self._sdk: Sdk | None = None

    async def opened(self) -> Sdk:
        """Return the SDK, which is loaded in a thread."""
        async with self._loading:
            if self._sdk is None:
                self._sdk = await asyncio.to_thread(self._load)
            return self._sdk

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        """Post a card, and return the id of the message."""
        activity = _card_message(card) | {"summary": card.summary}
        return _id_of(await self._call(service_url, "send_to_conversation", conversation_id, activity=activity))

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        """Replace the card of a message."""
        activity = _card_message(card) | {"summary": card.summary}
        await self._call(service_url, "update_activity", conversation_id, message_id, activity=activity)

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        """Show an update of a streamed message, and return the id of its stream."""
        if update.card is None:
            kind = "message" if update.phase is StreamPhase.FINAL else "typing"
            activity = {"type": kind, "entities": [update.entity]}
        else:
            activity = _card_message(update.card, update.entity)
        activity |= {"text": update.text, "textFormat": "plain"}
        answer = await self._call(service_url, "send_to_conversation", conversation_id, activity=activity)
        return update.stream_id or _id_of(answer)

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        """Delete a message."""
        await self._call(service_url, "delete_activity", conversation_id, message_id)

    async def _call(
        self, service_url: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> str:
        sdk = await self.opened()

        def request(token: str) -> Awaitable[str]:
            return sdk.call(service_url, token, operation, *ids, activity=activity)

        return await (self._token.used(request) if self._token else request(""))


def open_transport(name: SdkName, token: AccessToken | None, session: aiohttp.ClientSession) -> Transport:
    def load() -> Sdk:
        if name == "builtin":
            return ConnectorService(session)
        try:
            from adapters.teams.sdk_botbuilder import Botbuilder
        except ModuleNotFoundError:
            raise ConfigurationError(
                "TEAMS_SDK=botbuilder needs botbuilder: install plumbline-bot[botbuilder]."
            ) from None

        return Botbuilder()

    return Transport(load, token)


def _card_message(card: Card, *entities: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the card, and with these entities and those of the card."""
    message: dict[str, Any] = {
        "type": "message",
        "attachments": [{"contentType": ADAPTIVE_CARD, "content": card.content}],
    }
    if described := [*entities, *card.entities]:
        message["entities"] = described
    if card.channel_data is not None:
        message["channelData"] = card.channel_data
    return message


def _id_of(message_id: str) -> str:
    if not message_id:
        raise PlumblineError("Teams accepted the message but did not return its id.")
    return message_id
