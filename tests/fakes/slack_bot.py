"""Our side of Slack behind its real route, with a fake Slack and a fake inbox at its ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from adapters.slack.channels import is_open
from adapters.slack.client import BotIdentity, slack_client
from adapters.slack.inbound import SlackInbound
from bot.web.routes import Webhooks, build_app
from core.model.alert import AlertDelivery
from core.model.conversation import Channel, Platform
from core.model.team import Team
from handlers.common.ports import OpenChannels
from handlers.questions.doors import AskInForm
from handlers.questions.show_home import home_of
from tests.fakes import slack_api, slack_payloads
from tests.fakes.clock import FakeClock
from tests.fakes.inbox import FakeInbox
from tests.fakes.passage_index import FakePassageIndex
from tests.fakes.ports import some_ports
from tests.fakes.slack_api import FakeSlack
from tests.fakes.store import InMemoryStore

CHANNELS = (
    Channel("ask-plumbline", {Platform.SLACK: slack_api.CHANNEL}),
    Channel("payments-private", {Platform.SLACK: slack_api.PRIVATE_CHANNEL}, private=True),
    Channel("partners", {Platform.SLACK: slack_api.SHARED_CHANNEL}),
)
TEAMS = (Team("payments", "Payments", on_call=("Ines Okafor",)), Team("bookings", "Bookings"))
SETTINGS = (("Answers", "quoted from the documents"),)
EXAMPLES = ("How do I roll back a canary?", "How do I drain a drydock runner?")
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class SlackBot:
    slack: FakeSlack
    inbox: FakeInbox
    store: InMemoryStore
    clock: FakeClock
    http: TestClient[web.Request, web.Application]

    async def event(self, event: dict[str, Any], **envelope: Any) -> ClientResponse:
        return await self.send(json.dumps(slack_payloads.event_callback(event, **envelope)))

    async def command(self, text: str, **fields: str) -> ClientResponse:
        return await self.send(urlencode(slack_payloads.slash_command(text, **fields)), FORM)

    async def press(self, payload: dict[str, Any]) -> ClientResponse:
        return await self.send(slack_payloads.interaction(payload), FORM)

    async def send(self, body: str, content_type: str = "application/json", **headers: str) -> ClientResponse:
        """A request as Slack signs it, with `headers` on top."""
        signature = slack_payloads.signed(body, self.clock.now().timestamp())
        return await self.post(body.encode(), {"Content-Type": content_type} | signature | headers)

    async def post(self, body: bytes, headers: dict[str, str]) -> ClientResponse:
        return await self.http.post("/slack/events", data=body, headers=headers)


@asynccontextmanager
async def slack_bot(
    *, app_token: str | None = None, signing_secret: str | None = slack_api.SIGNING_SECRET
) -> AsyncIterator[SlackBot]:
    inbox, store, clock = FakeInbox(), InMemoryStore(), FakeClock()
    async with FakeSlack() as slack:
        client = slack_client(slack_api.BOT_TOKEN, slack.url)
        look_up = partial(is_open, client=client, identity=BotIdentity(client))
        openness = {Platform.SLACK: OpenChannels(look_up, clock).is_open}
        shown = {"channels": CHANNELS, "teams": TEAMS, "store": store, "openness": openness}
        home = partial(home_of, ports=some_ports(settings=SETTINGS, index=FakePassageIndex(), **shown))
        inbound = SlackInbound(
            client=slack_client(slack_api.BOT_TOKEN, slack.url),
            signing_secret=signing_secret,
            app_token=app_token,
            channels=CHANNELS,
            inbox=inbox,
            forms=AskInForm(some_ports(**shown)),
            home_of=home,
            examples=EXAMPLES,
            clock=clock,
        )
        app = build_app(
            webhooks=Webhooks({}, _no_delivery, None, clock),
            chats={Platform.SLACK: inbound.handle},
            ready=_ready,
            add_console=lambda app: None,
        )
        async with TestClient(TestServer(app)) as http:
            await inbound.start()
            yield SlackBot(slack, inbox, store, clock, http)
            await inbound.close()


async def _no_delivery(delivery: AlertDelivery) -> str | None:
    raise AssertionError("no webhook is sent here")


async def _ready() -> str:
    return ""
