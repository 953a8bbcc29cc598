"""Slack as a Messenger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from slack_sdk.errors import SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call
from adapters.slack.confidence import alarm_diagram
from adapters.slack.render import render
from core.conversation import MessageReference, Place
from core.errors import ChatUnavailable, MessageNotFound
from core.messages import DriftAlarm, Message

EVENT_TYPE = "plumbline_post"  # of the metadata that names a post's intent
PAGE = 200  # messages asked for at once
MAX_PAGES = 5  # looked through for a post that may have been made before a crash

log = structlog.get_logger()


class SlackMessenger:
    """Implements `core.ports.Messenger`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        rendered = render(message)
        posted = await call(
            "chat.postMessage",
            self._client.chat_postMessage(
                channel=place.channel,
                thread_ts=place.thread,
                text=rendered.text,
                blocks=rendered.blocks,
                metadata={"event_type": EVENT_TYPE, "event_payload": {"intent": intent}},
                unfurl_links=False,
                unfurl_media=False,
                link_names=False,
                parse="none",
            ),
        )
        # A person's id as channel opens a direct message: Slack's answer says which one.
        reference = MessageReference(replace(place, channel=posted["channel"]), posted["ts"])
        if isinstance(message, DriftAlarm):
            await self._illustrate(reference, message)
        return reference

    async def edit(self, reference: MessageReference, message: Message) -> None:
        rendered = render(message)
        await call(
            "chat.update",
            self._client.chat_update(
                channel=reference.place.channel,
                ts=reference.message_id,
                text=rendered.text,
                blocks=rendered.blocks,
                link_names=False,
                parse="none",
            ),
        )

    async def delete(self, reference: MessageReference) -> None:
        deletion = self._client.chat_delete(channel=reference.place.channel, ts=reference.message_id)
        with suppress(MessageNotFound):
            await call("chat.delete", deletion)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        cursor = ""
        for _ in range(MAX_PAGES):
            page = await self._page(place, cursor)
            for message in page.get("messages", ()):
                if _intent(message) == intent:
                    return MessageReference(place, message["ts"])
            cursor = page.get("response_metadata", {}).get("next_cursor", "")
            if not cursor:
                break
        return None

    async def _illustrate(self, reference: MessageReference, alarm: DriftAlarm) -> None:
        """Put the diagram into the alarm's thread; an alarm whose picture Slack does not take stands all the same."""
        try:
            await call(
                "files.upload",
                self._client.files_upload_v2(
                    channel=reference.place.channel,
                    thread_ts=reference.place.thread or reference.message_id,
                    content=await asyncio.to_thread(alarm_diagram, alarm),
                    filename="reliability.png",
                    title=alarm.title,
                    alt_txt=alarm.text,
                ),
            )
        except (ChatUnavailable, MessageNotFound, SlackRequestError) as error:
            log.warning("alarm without its picture", reason=str(error))

    async def _page(self, place: Place, cursor: str) -> dict[str, Any]:
        options: dict[str, Any] = {"include_all_metadata": True, "limit": PAGE, "cursor": cursor or None}
        if place.thread is None:
            history = self._client.conversations_history(channel=place.channel, **options)
            return await call("conversations.history", history)
        replies = self._client.conversations_replies(channel=place.channel, ts=place.thread, **options)
        return await call("conversations.replies", replies)


def _intent(message: Mapping[str, Any]) -> str | None:
    metadata = message.get("metadata") or {}
    return metadata.get("event_payload", {}).get("intent") if metadata.get("event_type") == EVENT_TYPE else None
