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

from adapters.slack.client import slack_client
from adapters.slack.inbound import SlackInbound
from bot.wiring.application import Core
from bot.wiring.ports import all_ports, home_pages
from core.ports import Inbox
from handlers.questions.doors import AskInForm
from tests.fakes import slack_payloads
from tests.fakes.slack_api import BOT_TOKEN, BOT_USER, CHANNEL, SIGNING_SECRET, FakeSlack

TIMEOUT = 300.0  # seconds, also on a busy machine, until what a scenario waits for must have happened

_seconds = count(1_773_480_600)


def inbound_of(core: Core, slack: FakeSlack, inbox: Inbox) -> SlackInbound:
    """What takes the requests of this Slack."""
    return SlackInbound(
        client=slack_client(BOT_TOKEN, slack.url),
        signing_secret=SIGNING_SECRET,
        app_token=None,
        channels=core.workspace.channels,
        inbox=inbox,
        forms=AskInForm(all_ports(core)),
        home_of=home_pages(core),
        examples=core.workspace.examples,
        clock=core.clock,
    )


class WatchedSlack(FakeSlack):
    def __init__(self) -> None:
        super().__init__()
        for channel in ("C0ALERTS", "C0OTHER"):
            self.channels[channel] = {"id": channel, "is_channel": True, "is_member": True}
        self.channels["C0PAGES"] = {"id": "C0PAGES", "is_channel": True, "is_member": True}
        self._news = asyncio.Condition()
        self._sent: list[str] = []

    async def asks(self, address: str, text: str, **fields: str) -> str:
        """Somebody asks the bot at this address; returns the question's `ts` once it is acknowledged.

        `fields` are further ones of the event, as `thread_ts`.
        """
        ts = f"{next(_seconds)}.000100"
        event = slack_payloads.mention(f"<@{BOT_USER}> {text}", ts=ts, **fields)
        self.messages.append({"channel": CHANNEL, "ts": ts, "user": event["user"], "text": event["text"], **fields})
        await self.delivers(address, event)
        return ts

    async def posts(self, address: str, channel: str, **fields: Any) -> str:
        """Another bot posts, or edits with `subtype`; returns the `ts` once it is acknowledged."""
        ts = fields.pop("ts", f"{next(_seconds)}.000100")
        message = {"type": "message", "channel": channel, "ts": ts, "bot_id": "B0BELL", "app_id": "A0BELL"} | fields
        event = message | {"channel_type": "channel"}
        if earlier := next((each for each in self.messages if (each["channel"], each["ts"]) == (channel, ts)), None):
            edited = earlier | message | {"edited": {"user": "U0BELL", "ts": f"{next(_seconds)}.000200"}}
            self.messages[self.messages.index(earlier)] = edited
            event = {"type": "message", "subtype": "message_changed", "channel": channel, "ts": edited["edited"]["ts"]}
            event |= {"message": edited, "previous_message": earlier, "channel_type": "channel"}
        else:
            self.messages.append(message)
        await self.delivers(address, event)
        return ts

    async def delivers(self, address: str, event: dict[str, Any]) -> None:
        """Deliver an event, which is acknowledged."""
        self._sent.append(json.dumps(slack_payloads.event_callback(event, event_id=f"Ev{next(_seconds)}")))
        await self._send(address, self._sent[-1])

    async def delivers_again(self, address: str, count: int) -> None:
        """Deliver the latest events again, as Slack does with those that it does not know to be acknowledged."""
        for body in self._sent[-count:]:
            await self._send(address, body)

    async def presses(self, address: str, button: dict[str, Any], posted: dict[str, Any]) -> None:
        """Somebody presses a button of a posted message, which is acknowledged."""
        await self._send(address, json.dumps(slack_payloads.button_press(button, posted)))

    async def _send(self, address: str, body: str) -> None:
        async with aiohttp.ClientSession() as session:
            for is_last in (False, False, True):  # what is refused for the moment is delivered again
                headers = slack_payloads.signed(body, time.time()) | {"Content-Type": "application/json"}
                async with session.post(f"{address}slack/events", data=body, headers=headers) as response:
                    if response.status == 503 and not is_last:
                        continue
                    assert response.status == 200, await response.text()
                    return

    def replies(self, ts: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message.get("thread_ts") == ts]

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait until this is true; it is looked at again with every call of the bot."""
        try:
            async with asyncio.timeout(TIMEOUT), self._news:
                await self._news.wait_for(reached)
        except TimeoutError:
            latest = [f"{each['channel']}: {each['text'][:80]}" for each in self.messages[-5:]]
            raise AssertionError(f"Not reached in {TIMEOUT} s. The latest messages are {latest}.") from None

    async def _call(self, request: web.Request) -> web.Response:
        response = await super()._call(request)
        async with self._news:
            self._news.notify_all()
        return response
