"""Assistant threads in Slack: the panel beside a conversation in which people talk to the bot alone.

https://docs.slack.dev/ai
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call
from adapters.slack.entities import plain_text
from adapters.slack.mrkdwn import cut, one_line
from adapters.slack.payloads import AssistantThread, MessageEvent, parse
from core.model.errors import PlumblineError

MAX_PROMPTS = 4
MAX_TITLE = 75  # characters of a prompt's or a thread's title
MAX_UNTITLED = 1_000  # threads whose first question is waited for
PATIENCE = 1.5  # seconds; Slack's event waits for its acknowledgement meanwhile

PROMPTS_TITLE = "For example"
WHAT_IS_OPEN = {"title": "What is open, and what do you know?", "message": "status"}

logger = logging.getLogger(__name__)


class AssistantThreads:
    """Offers prompts where a thread begins, and names it after its first question.

    Prompts and titles are comfort: if Slack does not take them, the conversation goes on without.
    """

    def __init__(self, client: AsyncWebClient, examples: Sequence[str]) -> None:
        self._client = client
        self._prompts = [
            *({"title": cut(one_line(each, MAX_TITLE), MAX_TITLE), "message": each} for each in examples),
        ][: MAX_PROMPTS - 1]
        self._prompts.append(WHAT_IS_OPEN)
        self._untitled: dict[tuple[str, str], None] = {}
        self._naming: set[asyncio.Task[None]] = set()

    def listen(self, app: AsyncApp) -> None:
        app.event("assistant_thread_started")(self._on_thread)
        app.event("assistant_thread_context_changed")(self._on_thread)

    async def _on_thread(self, event: dict[str, Any]) -> None:
        """A thread whose start was missed gets its prompts when the person looks at something else."""
        thread = parse(AssistantThread, event).assistant_thread
        if event["type"] == "assistant_thread_started":
            if len(self._untitled) >= MAX_UNTITLED:
                self._untitled.pop(next(iter(self._untitled)))
            self._untitled[thread.channel_id, thread.thread_ts] = None
        await self._try(
            "assistant.threads.setSuggestedPrompts",
            self._client.assistant_threads_setSuggestedPrompts(
                channel_id=thread.channel_id,
                thread_ts=thread.thread_ts,
                title=PROMPTS_TITLE,
                prompts=self._prompts,
            ),
        )

    def name(self, message: MessageEvent, bot_user_id: str) -> None:
        """Name the thread after this message if it is the first one in it. Does not wait for Slack."""
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
            async with asyncio.timeout(PATIENCE):
                await call(method, response)
        except (PlumblineError, TimeoutError) as error:
            logger.warning("an assistant thread goes on without: %s", error or f"{method} was too slow")
