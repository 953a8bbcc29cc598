"""The Messenger port on Teams."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from adapters.teams.activity import THREAD_SEPARATOR
from adapters.teams.cloud import Cloud
from adapters.teams.references import ConversationReference, ConversationReferences, recall
from adapters.teams.render import render
from adapters.teams.transport import Transport
from core.conversation import MessageReference, Place
from core.errors import ChatUnavailable, MessageNotFound
from core.messages import Message

MAX_REMEMBERED_POSTS = 1000

NEVER_MET = (
    "Teams has not told yet where {channel} can be reached: add the app to its team, or mention the bot there once."
)


class TeamsMessenger:
    """Posts through the connector service that a conversation was last heard from.

    The connector API cannot list the messages of a conversation, and takes no idempotency key. `find` therefore
    knows only the posts of this process: a post goes on to its end although its caller was cancelled, and is found
    by the next attempt. What remains is a process killed between the connector's taking a message and the record of
    its id: that one message is posted again.
    """

    def __init__(
        self, *, transport: Transport, references: ConversationReferences, tenant_id: str, cloud: Cloud
    ) -> None:
        self._transport = transport
        self._references = references
        self._tenant_id = tenant_id
        self._cloud = cloud
        self._posts: dict[str, asyncio.Task[MessageReference]] = {}

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        task = asyncio.create_task(self._post(place, message))
        self._posts.pop(intent, None)
        self._posts[intent] = task
        if len(self._posts) > MAX_REMEMBERED_POSTS:
            del self._posts[next(iter(self._posts))]
        return await asyncio.shield(task)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        place = reference.place
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread or reference.message_id, home)
        await self._transport.update(home.service_url, conversation, reference.message_id, render(message))

    async def delete(self, reference: MessageReference) -> None:
        place = reference.place
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread or reference.message_id, home)
        with suppress(MessageNotFound):
            await self._transport.delete(home.service_url, conversation, reference.message_id)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        task = self._posts.get(intent)
        if task is None:
            return None
        await asyncio.wait([task])
        return None if task.cancelled() or task.exception() is not None else task.result()

    async def close(self) -> None:
        if self._posts:
            await asyncio.wait(self._posts.values())
        await self._transport.close()

    async def _post(self, place: Place, message: Message) -> MessageReference:
        home = await self._home(place)
        conversation = _conversation_id(place.channel, place.thread, home)
        card = await asyncio.to_thread(render, message)  # a picture in it takes a second to draw
        return MessageReference(place, await self._transport.send(home.service_url, conversation, card))

    async def _home(self, place: Place) -> ConversationReference:
        home = await recall(self._references, place.channel, place.workspace or self._tenant_id)
        if home is None or not self._cloud.serves(home.service_url):
            raise ChatUnavailable(NEVER_MET.format(channel=place.channel))
        return home


def _conversation_id(channel: str, thread: str | None, home: ConversationReference) -> str:
    """A message sent to a channel itself begins a thread; a chat, which is one thread of its own, knows no others."""
    inside = thread is not None and thread != channel and home.threaded
    return f"{channel}{THREAD_SEPARATOR}{thread}" if inside else channel
