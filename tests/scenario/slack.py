"""A Slack in which a person asks, and whose answers can be waited for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import aiohttp
from aiohttp import web

from tests.fakes import slack_api
from tests.fakes.slack_api import BOT_USER, CHANNEL, FakeSlack

PATIENCE = 20.0  # seconds until what a scenario waits for must have happened

_seconds = count(1_773_480_600)


class WatchedSlack(FakeSlack):
    def __init__(self) -> None:
        super().__init__()
        self.channels["C0PAGES"] = {"id": "C0PAGES", "is_channel": True, "is_member": True}
        self._news = asyncio.Condition()

    async def asks(self, address: str, text: str) -> str:
        """Somebody asks the bot at this address; returns the question's `ts` once it is acknowledged."""
        ts = f"{next(_seconds)}.000100"
        event = slack_api.mention(f"<@{BOT_USER}> {text}", ts=ts)
        self.messages.append({"channel": CHANNEL, "ts": ts, "user": event["user"], "text": event["text"]})
        body = json.dumps(slack_api.event_callback(event, event_id=f"Ev{ts}"))
        headers = slack_api.signed(body, time.time()) | {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{address}slack/events", data=body, headers=headers) as response,
        ):
            assert response.status == 200, await response.text()
        return ts

    def replies(self, ts: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message.get("thread_ts") == ts]

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait until this is true; it is looked at again with every call of the bot."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(reached)

    async def _call(self, request: web.Request) -> web.Response:
        response = await super()._call(request)
        async with self._news:
            self._news.notify_all()
        return response
