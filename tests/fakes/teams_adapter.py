"""The Teams adapter between a fake of Microsoft's side and an inbox that remembers."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from aiohttp.test_utils import TestClient, TestServer

from adapters.posted.teams import TeamsPosted
from adapters.teams.activity import TeamsAudiences
from adapters.teams.connector import THIS_MACHINE, Connector, TeamsGuests
from adapters.teams.history import PostedMessages, TeamsHistory, TeamsThreads
from adapters.teams.inbound import TeamsInbound
from adapters.teams.messenger import SdkName, TeamsMessenger, open_connector
from bot.web.routes import Webhooks, build_app
from core.model.conversation import Audience, Channel, MessageReference, Person, Platform
from core.model.messages import ButtonAction, Form, Message
from tests.fakes.clock import FakeClock
from tests.fakes.inbox import FakeInbox
from tests.fakes.teams_connector import APP_ID, TENANT, FakeReferences, TeamsConnector, access_token, login

Body = dict[str, Any] | bytes | str
ONE_TENANT = frozenset({TENANT})


class FakeForms:
    """Implements `core.ports.Forms`: the form of a button, whatever it is about."""

    def __init__(self) -> None:
        self.known: dict[ButtonAction, Form] = {}

    async def form(self, verdict: ButtonAction, subject: str, audience: Audience, person: Person) -> Form | None:
        return self.known.get(verdict)


class FakeStanding:
    """Implements `core.ports.CardRefresher`: what a message shows, by its id."""

    def __init__(self) -> None:
        self.known: dict[str, Message] = {}

    async def message(self, reference: MessageReference) -> Message | None:
        return self.known.get(reference.message_id)


@dataclass(frozen=True)
class Answered:
    """The response to an activity."""

    status: int
    text: str


@dataclass(frozen=True)
class TeamsAdapter:
    connector: TeamsConnector
    inbox: FakeInbox
    references: FakeReferences
    clock: FakeClock
    messenger: TeamsMessenger
    new_messenger: Callable[[], TeamsMessenger]  # that of a process which starts now
    threads: TeamsThreads
    posted: TeamsPosted  # what other bots post
    client: TestClient
    forms: FakeForms
    standing: FakeStanding

    async def deliver(self, activity: Body, token: str | None = None, **headers: str) -> Answered:
        """POST /api/messages as Teams does it: with a valid token, if no other is given."""
        authorization = {"Authorization": f"Bearer {self.connector.token() if token is None else token}"}
        return await self.post(activity, **(authorization | headers))

    async def post(self, activity: Body, **headers: str) -> Answered:
        """POST /api/messages with these headers and no others."""
        body: dict[str, Any] = (
            {"json": activity} if isinstance(activity, dict) else {"data": io.BytesIO(_bytes(activity))}
        )
        if not isinstance(activity, dict):
            headers = {"Content-Type": "application/json"} | headers
        async with self.client.post("/api/messages", headers=headers, **body) as response:
            return Answered(response.status, await response.text())


@asynccontextmanager
async def open_teams(
    sdk: SdkName, *, channels: Iterable[Channel] = (), tenant_ids: frozenset[str] = ONE_TENANT, anonymous: bool = False
) -> AsyncIterator[TeamsAdapter]:
    inbox, references, clock = FakeInbox(), FakeReferences(), FakeClock()
    forms, standing = FakeForms(), FakeStanding()
    app_id = "" if anonymous else APP_ID
    async with TeamsConnector() as connector, aiohttp.ClientSession() as session:
        connector.now = clock.now
        cloud = THIS_MACHINE if anonymous else connector.cloud
        token = None if anonymous else access_token(cloud, session)
        inbound = TeamsInbound(
            app_id=app_id,
            tenant_ids=tenant_ids,
            anonymous=anonymous,
            audiences=TeamsAudiences(
                channels, TeamsGuests(Connector(token, session), clock) if token else None, references
            ),
            inbox=inbox,
            forms=forms,
            refresher=standing,
            references=references,
            clock=clock,
            session=session,
            cloud=cloud,
        )

        opened: list[TeamsMessenger] = []

        def new_messenger() -> TeamsMessenger:
            messenger = TeamsMessenger(
                connector=open_connector(sdk, token, session),
                references=references,
                tenant_ids=tenant_ids,
                cloud=cloud,
                posted=PostedMessages(history(), clock) if token else None,
            )
            opened.append(messenger)
            return messenger

        def history() -> TeamsHistory:
            return TeamsHistory(
                app_id=APP_ID,
                login=partial(login, cloud),
                tenant_ids=tenant_ids,
                references=references,
                connector=Connector(token or access_token(cloud, session), session),
                cloud=cloud,
                clock=clock,
                session=session,
            )

        messenger = new_messenger()
        app = build_app(
            webhooks=Webhooks({}, _accept_nothing, None, clock),
            chats={Platform.TEAMS: inbound.handle},
            ready=_always_ready,
            add_console=lambda app: None,
            playgrounds=[Platform.TEAMS] if anonymous else (),
        )
        threads, posted = TeamsThreads(history(), clock), TeamsPosted(history(), clock, inbox)
        async with TestClient(TestServer(app)) as client:
            yield TeamsAdapter(
                connector, inbox, references, clock, messenger, new_messenger, threads, posted, client, forms, standing
            )
        for each in opened:
            await each.close()


def _bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


async def _accept_nothing(delivery: object) -> None: ...


async def _always_ready() -> str:
    return ""
