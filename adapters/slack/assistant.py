"""Suggested prompts in a direct conversation with the bot, and titles of assistant threads.

An app has one of two experiences. In the agent messaging experience (`agent_view` in its manifest, for every new app) the
conversation is the app's Messages tab; `app_home_opened` says that it was opened, and prompts belong to no thread. In the
older assistant experience (`assistant_view`) each conversation is a thread that `assistant_thread_started` announces.

https://docs.slack.dev/ai/migrating-to-agent-messaging
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call
from adapters.slack.mrkdwn import cut, one_line, plain_text
from adapters.slack.payloads import AssistantThread, MessageEvent, parse
from core.model.errors import PlumblineError

MAX_PROMPTS = 4
MAX_TITLE = 75  # characters of a prompt's or a thread's title
MAX_UNTITLED = 1_000  # threads without a title that wait for their first question
CALL_TIMEOUT = 1.5  # seconds; Slack waits for the acknowledgement of its event

PROMPTS_TITLE = "For example"
WHAT_IS_OPEN = {"title": "What is open, and what do you know?", "message": "status"}

logger = logging.getLogger(__name__)


class AssistantThreads:
    """Offers prompts at the start of a conversation, and names an assistant thread after its first question.

    A conversation works without prompts and titles, so a failure to set them is only logged.
    """

    def __init__(self, client: AsyncWebClient, examples: Sequence[str]) -> None:
        self._client = client
        self._prompts = [
            *({"title": cut(one_line(each, MAX_TITLE), MAX_TITLE), "message": each} for each in examples),
        ][: MAX_PROMPTS - 1]
        self._prompts.append(WHAT_IS_OPEN)
        self._untitled: dict[tuple[str, str], None] = {}
        self._naming: set[asyncio.Task[None]] = set()
        self._has_assistant_view = False

    def listen(self, app: AsyncApp) -> None:
        app.event("assistant_thread_started")(self._on_thread)
        app.event("assistant_thread_context_changed")(self._on_thread)
        app.event("app_context_changed")(_acknowledge)

    async def offer_prompts(self, channel: str) -> None:
        """Offer prompts in the Messages tab of an agent app, which is the direct message `channel`."""
        if not self._has_assistant_view:
            await self._set_prompts(channel)

    async def _on_thread(self, event: dict[str, Any]) -> None:
        """Offer prompts when a thread starts, or when its context changes and the start was missed."""
        self._has_assistant_view = True
        thread = parse(AssistantThread, event).assistant_thread
        if event["type"] == "assistant_thread_started":
            if len(self._untitled) >= MAX_UNTITLED:
                self._untitled.pop(next(iter(self._untitled)))
            self._untitled[thread.channel_id, thread.thread_ts] = None
        await self._set_prompts(thread.channel_id, thread.thread_ts)

    async def _set_prompts(self, channel: str, thread: str | None = None) -> None:
        """Set the prompts. With a thread, an agent app's call would fail; without one, an assistant app's."""
        method = "assistant.threads.setSuggestedPrompts"
        setting = self._client.assistant_threads_setSuggestedPrompts(
            channel_id=channel, thread_ts=thread, title=PROMPTS_TITLE, prompts=self._prompts
        )
        await self._try(method, setting)

    def name(self, message: MessageEvent, bot_user_id: str) -> None:
        """Name the thread after this message if it is the first one. Does not wait for Slack."""
        thread = (message.channel, message.thread_ts or "")
        if thread not in self._untitled:
            return
        del self._untitled[thread]
        title = cut(one_line(plain_text(message.text, bot_user_id), MAX_TITLE), MAX_TITLE)
        naming = asyncio.create_task(
            self._try(
                "assistant.threads.setTitle",
                self._client.assistant_threads_setTitle(channel_id=thread[0], thread_ts=thread[1], title=title),
            )
        )
        self._naming.add(naming)
        naming.add_done_callback(self._naming.discard)

    async def close(self) -> None:
        for naming in self._naming:
            naming.cancel()
        await asyncio.gather(*self._naming, return_exceptions=True)

    async def _try(self, method: str, response: Any) -> None:
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await call(method, response)
        except (PlumblineError, TimeoutError) as error:
            logger.warning("a conversation has no prompts or title: %s", error or f"{method} was too slow")


async def _acknowledge(event: dict[str, Any]) -> None:
    """Ignore the event: the audience of an answer does not depend on what the person looks at."""
