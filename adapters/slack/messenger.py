"""The Messenger of Slack."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from slack_sdk.web.async_client import AsyncWebClient

from adapters.diagrams import diagram_png
from adapters.slack.blocks import Block, Rendered
from adapters.slack.client import call, error_code, intent_of, metadata, pages
from adapters.slack.render import render, whole_answer
from adapters.slack.sessions import NEVER, AgentSessions
from adapters.slack.threads import ThreadFiles
from core.model.conversation import MessageReference, Place
from core.model.errors import ChatUnavailable, MessageNotFound, Undeliverable
from core.model.message_view import Diagram
from core.model.messages import AnswerMessage, Message, Notice
from core.views.message_view import message_view

PAGE = 200  # messages per request
PERSON = ("U", "W")  # prefixes of people's ids
MAX_PAGES = 5  # searched for a post that may have been made before a crash
MAX_LINKS = 1_000  # message addresses cached
SIGN_INTERVAL = 5.0  # seconds between statuses
WORKING = "is at work …"  # shown after the bot's name

REFUSED_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format"})

log = structlog.get_logger()


class SlackMessenger:
    """Implements `core.ports.Messenger` and `core.ports.SignallingMessenger`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._files = ThreadFiles(client)
        self._sessions = AgentSessions(client)
        self._has_newest = True  # blocks, until Slack refuses them
        self._has_status = True  # until Slack refuses it
        self._waited_for: set[Place] = set()  # threads that show a status
        self._links: dict[tuple[str, str], str] = {}
        self._without_file: dict[tuple[str, str], None] = {}  # messages known to have no file in their thread

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        posted, blocks = await self._send(
            "chat.postMessage",
            message,
            channel=place.channel,
            thread_ts=place.thread,
            metadata=metadata(intent),
            unfurl_links=False,
            unfurl_media=False,
        )
        self._waited_for.discard(place)  # Slack removes the status itself
        # A person's id opens a direct message, whose id is in Slack's response.
        reference = MessageReference(replace(place, channel=posted["channel"]), posted["ts"])
        self._remember(reference, has_file=False)
        await self._sessions.update(reference, blocks)
        await self._complete(reference, message)
        return reference

    async def edit(self, reference: MessageReference, message: Message) -> None:
        _, blocks = await self._send("chat.update", message, channel=reference.place.channel, ts=reference.message_id)
        await self._sessions.update(reference, blocks)
        if isinstance(message, AnswerMessage | Notice) and _key(reference) not in self._without_file:
            with suppress(ChatUnavailable):  # then the old one stays
                await self._files.detach(reference, _file_name(reference))
                self._remember(reference, has_file=False)
        await self._complete(reference, message)
        await self._clear_status(reference.place)

    async def delete(self, reference: MessageReference) -> None:
        deletion = self._client.chat_delete(channel=reference.place.channel, ts=reference.message_id)
        with suppress(MessageNotFound):
            await call("chat.delete", deletion)
        await self._sessions.update(reference)
        await self._files.detach(reference, _file_name(reference))

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        """Return the message, or None.

        Posts to a person are not found, because only the post's response has the channel id.
        """
        if place.channel.startswith(PERSON):
            return None
        method = "conversations.history" if place.thread is None else "conversations.replies"
        thread = {} if place.thread is None else {"ts": place.thread}
        options = {"channel": place.channel, **thread, "include_all_metadata": True, "limit": PAGE}
        async for page in pages(self._client, method, options, MAX_PAGES):
            for message in page.get("messages", ()):
                if intent_of(message) == intent:
                    return MessageReference(place, message["ts"])
        return None

    async def link(self, reference: MessageReference) -> str:
        """Return the address of a message, cached."""
        key = _key(reference)
        if key not in self._links:
            asking = self._client.chat_getPermalink(channel=key[0], message_ts=key[1])
            try:
                self._links[key] = (await call("chat.getPermalink", asking)).get("permalink", "")
            except (ChatUnavailable, MessageNotFound):
                return ""
            if len(self._links) > MAX_LINKS:
                del self._links[next(iter(self._links))]
        return self._links[key]

    async def signal(self, place: Place, text: str) -> float:
        """Show a status in the thread until its next message, or for two minutes.

        Only if Slack does not support messages that show the steps of the work.
        """
        if self._has_newest or not self._has_status or place.thread is None:
            return 0.0
        if not await self._set_status(place, WORKING, [text]):
            return 0.0
        self._waited_for.add(place)
        return SIGN_INTERVAL

    async def _set_status(self, place: Place, status: str, shown: list[str]) -> bool:
        """Set the status, and return whether Slack accepted it."""
        setting = self._client.assistant_threads_setStatus(
            channel_id=place.channel, thread_ts=place.thread or "", status=status, loading_messages=shown
        )
        try:
            await call("assistant.threads.setStatus", setting)
        except (ChatUnavailable, MessageNotFound) as error:
            self._has_status = self._has_status and error_code(error) not in NEVER
            log.info("no status in Slack", reason=str(error))
            return False
        return True

    async def _clear_status(self, place: Place) -> None:
        """Clear the status, because an edit does not."""
        if place in self._waited_for:
            self._waited_for.discard(place)
            await self._set_status(place, "", [])

    async def _send(self, method: str, message: Message, **arguments: Any) -> tuple[dict[str, Any], list[Block]]:
        """Send a message, without the newest blocks where Slack does not know them. Raises the errors of `call`.

        Returns Slack's answer and the blocks that were sent.
        """
        rendered = render(message, newest=self._has_newest)
        try:
            return await self._call(method, rendered, arguments), rendered.blocks
        except Undeliverable as error:
            older = render(message, newest=False)
            if error_code(error) not in REFUSED_BLOCKS or older == rendered:
                raise
        answer = await self._call(method, older, arguments)
        self._has_newest = False
        log.info("Slack does not know the newest blocks", method=method)
        return answer, older.blocks

    async def _call(self, method: str, rendered: Rendered, arguments: dict[str, Any]) -> dict[str, Any]:
        send = self._client.chat_update if method == "chat.update" else self._client.chat_postMessage
        shown = {"text": rendered.text, "blocks": rendered.blocks, "link_names": False, "parse": "none"}
        return await call(method, send(**arguments, **shown))

    async def _complete(self, reference: MessageReference, message: Message) -> None:
        """Add the parts that do not fit into the message to the thread."""
        view = message_view(message)
        for diagram in view.all(Diagram):
            picture = await asyncio.to_thread(diagram_png, diagram)
            await self._files.attach(reference, "reliability.png", picture, diagram.title, view.summary)
        if text := whole_answer(view):
            title = "The whole answer"
            self._remember(reference, has_file=True)
            await self._files.attach(reference, _file_name(reference), text.encode(), title, title)

    def _remember(self, reference: MessageReference, *, has_file: bool) -> None:
        """Remember whether a later edit must remove a file from the thread; unknown messages may have one."""
        self._without_file.pop(_key(reference), None)
        if not has_file:
            self._without_file[_key(reference)] = None
            if len(self._without_file) > MAX_LINKS:
                del self._without_file[next(iter(self._without_file))]


def _key(reference: MessageReference) -> tuple[str, str]:
    return reference.place.channel, reference.message_id


def _file_name(reference: MessageReference) -> str:
    """Return the name of the file with the full answer."""
    return f"answer-{reference.message_id}.md"
