"""The Messenger of Slack.

https://docs.slack.dev/reference/methods/chat.postEphemeral
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.blocks import Rendered
from adapters.slack.client import call, error_code, intent_of, metadata, pages
from adapters.slack.render import render
from core.model.conversation import MessageReference, Person, Place
from core.model.errors import ChatUnavailable, MessageNotFound, Undeliverable
from core.model.messages import Message, Notice, is_lifted

PAGE = 200  # messages per request
PERSON = ("U", "W")  # prefixes of people's ids
MAX_SEARCHED_PAGES = 5  # searched for a post that may have been made before a crash
MAX_LINKS = 1_000  # message addresses cached

REFUSED_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format"})

log = structlog.get_logger()


class SlackMessenger:
    """Implements `core.ports.Messenger`. A message shows itself that work goes on, and what ends it."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._has_newest = True  # blocks, until Slack refuses them
        self._links: dict[tuple[str, str], str] = {}

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        """Post a message. A notice for one member is shown to everybody where that member is not in the channel."""
        if (
            isinstance(message, Notice)
            and message.only_for is not None
            and not place.channel.startswith((*PERSON, "D"))  # where one person is alone with the bot
        ):
            with suppress(Undeliverable):
                return await self._post_alone(place, message, message.only_for)
        posted = await self._send(
            "chat.postMessage",
            message,
            channel=place.channel,
            thread_ts=place.thread,
            reply_broadcast=is_lifted(message, place) or None,
            metadata=metadata(intent),
            unfurl_links=False,
            unfurl_media=False,
        )
        # A person's id opens a direct message, whose id is in Slack's response.
        return MessageReference(replace(place, channel=posted["channel"]), posted["ts"])

    async def _post_alone(self, place: Place, message: Message, reader: Person) -> MessageReference:
        """Post a message that one member sees until they reload Slack, in the channel.

        In a thread it would be seen by those who have it open, which who pressed a button above it has not.
        """
        posted = await self._send("chat.postEphemeral", message, channel=place.channel, user=reader.id)
        return MessageReference(replace(place, thread=None), posted["message_ts"])

    async def edit(self, reference: MessageReference, message: Message) -> None:
        await self._send("chat.update", message, channel=reference.place.channel, ts=reference.message_id)

    async def delete(self, reference: MessageReference) -> None:
        deletion = self._client.chat_delete(channel=reference.place.channel, ts=reference.message_id)
        with suppress(MessageNotFound):
            await call("chat.delete", deletion)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        """Return the message, or None.

        Posts to a person are not found, because only the post's response has the channel id.
        """
        if place.channel.startswith(PERSON):
            return None
        method = "conversations.history" if place.thread is None else "conversations.replies"
        options = {"channel": place.channel, "ts": place.thread, "include_all_metadata": True, "limit": PAGE}
        async for page in pages(self._client, method, options, MAX_SEARCHED_PAGES):
            for message in page.get("messages", ()):
                if intent_of(message) == intent:
                    return MessageReference(place, message["ts"])
        return None

    async def link(self, reference: MessageReference) -> str:
        """Return the address of a message, cached."""
        key = reference.place.channel, reference.message_id
        if key not in self._links:
            asking = self._client.chat_getPermalink(channel=key[0], message_ts=key[1])
            try:
                self._links[key] = (await call("chat.getPermalink", asking)).get("permalink", "")
            except (ChatUnavailable, MessageNotFound):
                return ""
            if len(self._links) > MAX_LINKS:
                del self._links[next(iter(self._links))]
        return self._links[key]

    async def _send(self, method: str, message: Message, **arguments: Any) -> dict[str, Any]:
        """Send a message, without the newest blocks where Slack does not know them, and return Slack's answer.

        Raises the errors of `call`.
        """
        rendered = render(message, newest=self._has_newest)
        try:
            return await self._call(method, rendered, arguments)
        except Undeliverable as error:
            older = render(message, newest=False)
            if error_code(error) not in REFUSED_BLOCKS or older == rendered:
                raise
        answer = await self._call(method, older, arguments)
        self._has_newest = False
        log.info("Slack does not know the newest blocks", method=method)
        return answer

    async def _call(self, method: str, rendered: Rendered, arguments: dict[str, Any]) -> dict[str, Any]:
        shown = {"text": rendered.text, "blocks": rendered.blocks, "link_names": False, "parse": "none"}
        given = {name: value for name, value in arguments.items() if value is not None}
        return await call(method, self._client.api_call(method, json=given | shown))
