"""The Messenger of Teams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal
from urllib.parse import quote

import aiohttp

from adapters.teams.activity import THREAD_SEPARATOR
from adapters.teams.connector import (
    NEVER_MET,
    AccessToken,
    Cloud,
    Connector,
    ConversationReference,
    ConversationReferences,
    MessageTooLarge,
    home_of,
)
from adapters.teams.delivery import card_message, send
from adapters.teams.elements import SIZE_BUDGETS, Card
from adapters.teams.history import PostedMessages, marked
from adapters.teams.render import render
from core.model.conversation import MessageReference, Place
from core.model.errors import ChatClosed, ConfigurationError, MessageNotFound, PlumblineError
from core.model.messages import Message

MAX_REMEMBERED_POSTS = 1000


class TeamsMessenger:
    """Posts through the connector service that sent the last activity of a conversation.

    The connector API cannot list messages and has no idempotency keys. A post is completed even if its caller is
    cancelled, and `find` then knows it. After a crash or a lost response, an attempted post is searched for with
    Microsoft Graph; without its consent, it is posted again.
    """

    def __init__(
        self,
        *,
        connector: Connector,
        references: ConversationReferences,
        tenant_ids: frozenset[str],
        cloud: Cloud,
        posted: PostedMessages | None = None,
    ) -> None:
        """Create the messenger.

        `tenant_ids` are the served tenants, empty for all; without `posted`, Graph is not used.
        """
        self._connector = connector
        self._references = references
        self._tenant_ids = tenant_ids
        self._cloud = cloud
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
            lambda card: self._connector.call(
                home.service_url, "update_activity", conversation, reference.message_id, activity=card_message(card)
            ),
        )

    async def delete(self, reference: MessageReference) -> None:
        place = reference.place
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread or reference.message_id, home)
        with suppress(MessageNotFound):
            await self._connector.call(home.service_url, "delete_activity", conversation, reference.message_id)

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
        message_id = await _as_large_as_accepted(
            message, intent, lambda card: send(message, self._connector, home, conversation, card_message(card))
        )
        if not message_id:
            raise PlumblineError("Teams accepted the message but did not return its id.")
        self._remember(place.channel, message_id, intent)
        return MessageReference(place, message_id)

    def _remember(self, channel: str, message_id: str, intent: str) -> None:
        self._intents[channel, message_id] = intent
        if len(self._intents) > MAX_REMEMBERED_POSTS:
            del self._intents[next(iter(self._intents))]

    async def _home(self, place: Place) -> ConversationReference:
        home = await home_of(self._references, place, self._tenant_ids, self._cloud)
        if home is None:
            raise ChatClosed(NEVER_MET.format(channel=place.channel))
        return home


async def _as_large_as_accepted(message: Message, intent: str, say: Callable[[Card], Awaitable[str]]) -> str:
    """Post the message as large as Teams accepts. Raises MessageTooLarge if even the smallest version is too large.

    The card is marked with its intent, unless that is empty.
    """
    for smallest in range(len(SIZE_BUDGETS)):
        with suppress(MessageTooLarge):
            card = await asyncio.to_thread(render, message, SIZE_BUDGETS[smallest:])
            return await say(marked(card, intent) if intent else card)
    raise MessageTooLarge("Teams refuses even the shortest form of the message.")


def _conversation_id(channel: str, thread: str | None, home: ConversationReference) -> str:
    """Return the conversation id. A message to a channel begins a thread; a chat has no threads."""
    inside = thread is not None and thread != channel and home.threaded
    return f"{channel}{THREAD_SEPARATOR}{thread}" if inside else channel


SdkName = Literal["builtin", "botbuilder"]


def open_connector(sdk: SdkName, token: AccessToken | None, session: aiohttp.ClientSession) -> Connector:
    """Return a client of the chosen kind. Raises ConfigurationError if its library is not installed."""
    if sdk == "builtin":
        return Connector(token, session)
    try:
        from adapters.teams.sdk_botbuilder import Botbuilder
    except ModuleNotFoundError:
        raise ConfigurationError("TEAMS_SDK=botbuilder needs botbuilder: install plumbline-bot[botbuilder].") from None
    return Botbuilder(token, session)
