"""The ThreadReader of Slack."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import pages
from adapters.slack.identity import BotIdentity
from adapters.slack.mrkdwn import plain_text
from core.model.conversation import Place, Speaker, Turn, cut_message
from core.model.errors import MessageNotFound

PAGE = 200  # messages per request
MAX_PAGES = 5  # read per thread; the last messages of a longer one are missing


class SlackThreads:
    """Implements `core.ports.ThreadReader`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._identity = BotIdentity(client)

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        if place.thread is None:
            return ()
        bot = await self._identity.user_id()
        try:
            messages = await self._messages(place.channel, place.thread)
        except MessageNotFound:
            return ()
        said = [message for message in messages if float(message["ts"]) < before.timestamp() and _text_of(message)]
        chosen = said if len(said) <= limit else [said[0], *said[len(said) - limit + 1 :]]
        return tuple(
            Turn(
                Speaker.PLUMBLINE if message.get("user") == bot else Speaker.PERSON,
                plain_text(cut_message(_text_of(message)), bot),
            )
            for message in chosen
        )

    async def _messages(self, channel: str, thread: str) -> list[dict[str, Any]]:
        """The thread's messages, oldest first."""
        read = pages(
            self._client, "conversations.replies", {"channel": channel, "ts": thread, "limit": PAGE}, MAX_PAGES
        )
        return [message async for page in read for message in page.get("messages", ())]


def _text_of(message: dict[str, Any]) -> str:
    """Return the text of a message, from its attachments if it has no other; empty if it was deleted."""
    if message.get("subtype") == "tombstone":
        return ""
    attached = (
        part
        for each in message.get("attachments") or ()
        for part in (each.get("title"), each.get("text") or each.get("fallback"))
    )
    return str(message.get("text") or "\n".join(filter(None, attached)))
