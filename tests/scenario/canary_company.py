"""A company with a secret in every restricted place, the whole bot in front of it, and chats to ask in.

Everything is real but the far ends: the sources read servers and files, the index is the embedded one, requests are
signed, and what is looked at is what the platforms were sent. Only the workflow engine is left out: what the inbox
takes is worked on at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp.test_utils import TestClient, TestServer

from adapters.console.console import Console
from adapters.console.messages import ConsoleMessenger, Live
from adapters.console.pages import ConsolePages
from adapters.posted.slack import SlackPosted
from adapters.slack.channels import SlackThreads
from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from adapters.store.conversations import SqlConsoleMessages, SqlTeamsConversations
from adapters.teams.activity import TeamsAudiences
from adapters.teams.connector import Connector, TeamsGuests
from adapters.teams.inbound import TeamsInbound
from adapters.teams.messenger import TeamsMessenger
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.web.routes import Webhooks, build_app
from bot.wiring.application import Core, ingest, open_core
from bot.wiring.ports import all_ports
from core.model.alert import Posted
from core.model.conversation import Place, Platform, Question
from core.model.message_view import Feedback, Reaction
from core.model.messages import ButtonAction
from handlers.common.ports import Ports
from handlers.feedback.record_feedback import record_reaction, take_feedback
from handlers.questions.doors import AskInForm, ShownAgain
from handlers.questions.redeliver import ask_to_redeliver
from handlers.questions.run_command import retract_question, run_command
from tests.fakes import slack_api, slack_payloads, teams_connector
from tests.fakes.slack_api import FakeSlack
from tests.fakes.teams_connector import TeamsConnector
from tests.scenario import canaries
from tests.scenario.canaries import GUEST, HELP, INES, KEEPERS, MATEO, PAYMENTS, TEAMS_PRIVATE
from tests.scenario.slack import inbound_of


class Inbox:
    """Implements `core.ports.Inbox`: everything is worked on before it is acknowledged."""

    def __init__(self) -> None:
        self.ports: Ports | None = None
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> None:
        assert self.ports is not None
        self.questions.append(question)
        await run_command(question, self.ports)

    async def overhear(self, remark: Question, name: Callable[[], Awaitable[str]]) -> None:
        raise AssertionError("Nobody speaks past the bot here.")

    async def post(self, posted: Posted) -> None:
        raise AssertionError("No other bot posts here.")

    async def join(self, place: Place) -> None:
        raise AssertionError("Nobody invites the bot here.")

    async def press(self, feedback: Feedback) -> None:
        assert self.ports is not None
        await take_feedback(feedback, self.ports)

    async def react(self, reaction: Reaction) -> None:
        assert self.ports is not None
        await record_reaction(reaction, self.ports)

    async def retract(self, question_id: str, place: Place, *, edited: bool = False) -> None:
        assert self.ports is not None
        await retract_question(question_id, place, self.ports)


class Company:
    """The bot, and the hands and eyes of the people in its chats. A place is called by its channel's id."""

    def __init__(self, core: Core, inbox: Inbox, slack: FakeSlack, teams: TeamsConnector, http: TestClient) -> None:
        self.core = core
        self.inbox = inbox
        self._slack = slack
        self._teams = teams
        self._http = http
        self._console = SqlConsoleMessages(core.engine)
        self._times = count(1_773_480_600)

    # --- asking ------------------------------------------------------------------------------------------------------

    @property
    def places(self) -> Mapping[str, Callable[..., Awaitable[str]]]:
        """Every place → how to say something there; a thread may be given, and the thread that it was said in is told."""
        return SLACK_PLACES | TEAMS_PLACES | CONSOLE_PLACES

    async def say(self, place: str, text: str, thread: str = "") -> str:
        return await self.places[place](self, place, text, thread)

    async def on_slack(self, channel: str, text: str, thread: str, user: str = INES, **envelope: Any) -> str:
        ts = f"{next(self._times)}.000100"
        event = slack_payloads.mention(f"<@{slack_api.BOT_USER}> {text}", ts=ts, channel=channel, user=user)
        if channel.startswith("D"):
            event |= {"type": "message", "channel_type": "im"}
        if thread:
            event["thread_ts"] = thread
        self._slack.messages.append({"channel": channel, "ts": ts, "user": user, "text": event["text"]})
        await self._signed(json.dumps(slack_payloads.event_callback(event, **envelope)), "application/json")
        return thread or ts

    async def slash(self, channel: str, text: str) -> None:
        user = self._slack.channels[channel].get("user", INES)
        trigger = f"1.{next(self._times)}.a"
        command = slack_payloads.slash_command(text, channel_id=channel, user_id=user, trigger_id=trigger)
        await self._signed(urlencode(command), "application/x-www-form-urlencoded")

    async def press(self, channel: str, verdict: ButtonAction, subject: str, typed: str = "") -> None:
        """A button in a Slack channel, also one that was never shown there."""
        ts = f"{next(self._times)}.000100"
        self._slack.messages.append({"channel": channel, "ts": ts, "user": slack_api.BOT_USER, "text": "…"})
        button = {"type": "button", "action_id": f"feedback:{verdict}", "value": subject}
        payload = slack_payloads.button_press(button, {"channel": channel, "ts": ts}, MATEO)
        payload["state"] = {"values": {"correction": {"correction": {"type": "plain_text_input", "value": typed}}}}
        await self._signed(slack_payloads.interaction(payload), "application/x-www-form-urlencoded")

    async def on_teams(self, channel: str, text: str, thread: str, kind: str = "channel", **fields: Any) -> str:
        root = thread or str(next(self._times))
        conversation = {"id": channel, "conversationType": kind, "tenantId": teams_connector.TENANT}
        if kind == "channel":
            conversation["id"] = f"{channel};messageid={root}"
        activity = self._teams.activity(
            id=str(next(self._times)),
            conversation=conversation,
            text=f"{teams_connector.MENTION} {text}",
            **({"channelData": {"tenant": {"id": teams_connector.TENANT}}} | fields),
        )
        headers = {"Authorization": f"Bearer {self._teams.token()}"}
        async with self._http.post("/api/messages", json=activity, headers=headers) as response:
            assert response.status == 200, await response.text()
        return root

    async def on_console(self, channel: str, text: str, thread: str) -> str:
        form = {"channel": channel, "text": text} | ({"thread": thread} if thread.isdigit() else {})
        async with self._http.post("/console/messages", data=form, headers={"HX-Request": "true"}) as response:
            assert response.status in (204, 404), await response.text()
        return thread or str((await self._console.page(channel, 1))[0].id)

    async def open_home(self, user: str) -> None:
        """A person's own page in Slack."""
        event = {"type": "app_home_opened", "user": user, "channel": HOMES[user], "tab": "home", "event_ts": "17.1"}
        await self._signed(json.dumps(slack_payloads.event_callback(event)), "application/json")

    async def page(self, path: str) -> str:
        async with self._http.get(path) as response:
            return await response.text()

    async def _signed(self, body: str, content_type: str) -> None:
        headers = slack_payloads.signed(body, time.time()) | {"Content-Type": content_type}
        async with self._http.post("/slack/events", data=body, headers=headers) as response:
            assert response.status == 200, await response.text()

    # --- looking -----------------------------------------------------------------------------------------------------

    async def received(self) -> dict[str, list[str]]:
        """Place → everything that the bot said there, as it was sent."""
        said: dict[str, list[str]] = {}
        for call in self._slack.calls:
            if call.method.startswith("chat."):
                said.setdefault(call.arguments["channel"], []).append(json.dumps(call.arguments))
            elif call.method == "views.publish":
                said.setdefault(HOMES[call.arguments["user_id"]], []).append(json.dumps(call.arguments))
            elif call.method == "views.open":
                about = json.loads(call.arguments["view"]["private_metadata"])
                said.setdefault(about["channel"], []).append(json.dumps(call.arguments))
        for sent in (*self._teams.sent, *self._teams.updated):
            said.setdefault(sent.conversation.partition(";")[0], []).append(json.dumps(sent.activity))
        for channel in CONSOLE_PLACES:
            page = await self._console.page(channel, 10_000)
            said[channel] = [json.dumps(message.payload) for message in page if message.kind != "person"]
        return said


HOMES = {INES: "D0INES", MATEO: "D0MATEO", GUEST: "D0GUEST"}  # read by whom the direct messages are read by
SLACK_PLACES: dict[str, Callable[..., Awaitable[str]]] = {
    **dict.fromkeys((HELP, PAYMENTS, KEEPERS, "C0GUESTS", "G0GROUP", slack_api.SHARED_CHANNEL), Company.on_slack),
    "D0INES": Company.on_slack,
    "D0MATEO": lambda company, *said: company.on_slack(*said, user=MATEO),
    "D0GUEST": lambda company, *said: company.on_slack(*said, user=GUEST),
    "C0OTHERTEAM": lambda company, *said: company.on_slack(
        *said, user="U0THEM", team_id="T0OTHER", is_ext_shared_channel=True
    ),
}
_GUESTS = {"tenant": {"id": teams_connector.TENANT}, "channel": {"id": "19:s@thread.tacv2", "type": "shared"}}
_ELSEWHERE = {"id": "a:elsewhere", "conversationType": "personal", "tenantId": "another-tenant"}
TEAMS_PLACES: dict[str, Callable[..., Awaitable[str]]] = {
    teams_connector.CHANNEL: Company.on_teams,
    TEAMS_PRIVATE: Company.on_teams,
    "19:s@thread.tacv2": lambda company, *said: company.on_teams(*said, channelData=_GUESTS),
    teams_connector.GROUP_CHAT: lambda company, *said: company.on_teams(*said, kind="groupChat"),
    "a:asha": lambda company, *said: company.on_teams(*said, kind="personal"),
    "a:mateo": lambda company, *said: company.on_teams(
        *said, kind="personal", **{"from": {"id": "29:mateo", "name": "Mateo", "aadObjectId": "77-mateo"}}
    ),
}
CONSOLE_PLACES: dict[str, Callable[..., Awaitable[str]]] = dict.fromkeys(("help", "vault"), Company.on_console)


@asynccontextmanager
async def company(folder: Path) -> AsyncIterator[Company]:
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(FakeSlack())
        teams = await stack.enter_async_context(TeamsConnector())
        canaries.people(slack)
        settings = Settings.model_validate(
            {
                "PLUMBLINE_DATA_DIR": folder / "data",
                "PLUMBLINE_CONFIG": canaries.workspace(folder),
                "SLACK_API_URL": slack.url,
            }
        )
        core = await stack.enter_async_context(open_core(settings, load_workspace(settings.config)))
        remote = [
            await stack.enter_async_context(source(core))
            for source in (canaries.slack, canaries.confluence, canaries.teams, canaries.sharepoint, canaries.notion)
        ]
        sources = (*core.knowledge.sources, *remote)
        core = replace(core, knowledge=replace(core.knowledge, sources=sources))
        await canaries.remember(core)
        report = await ingest(core)
        assert report.failed == {}
        yield await _opened(core, slack, teams, stack)


async def _opened(core: Core, slack: FakeSlack, teams: TeamsConnector, stack: AsyncExitStack) -> Company:
    inbox, live, references = Inbox(), Live(), SqlTeamsConversations(core.engine)
    channels = core.workspace.channels
    slack_inbound = inbound_of(core, slack, inbox)
    stack.push_async_callback(slack_inbound.close)
    tenants, cloud = frozenset({teams_connector.TENANT}), teams.cloud
    credentials = {"app_id": teams_connector.APP_ID, "tenant_ids": tenants, "cloud": cloud}
    token = teams_connector.access_token(cloud, core.session)
    teams_inbound = TeamsInbound(
        **credentials,
        anonymous=False,
        audiences=TeamsAudiences(channels, TeamsGuests(Connector(token, core.session), core.clock), references),
        inbox=inbox,
        forms=AskInForm(all_ports(core)),
        refresher=ShownAgain(core.store),
        references=references,
        clock=core.clock,
        session=core.session,
    )
    teams_messenger = TeamsMessenger(
        connector=Connector(token, core.session), references=references, tenant_ids=tenants, cloud=cloud
    )
    stack.push_async_callback(teams_messenger.close)
    console = SqlConsoleMessages(core.engine)
    session = await stack.enter_async_context(aiohttp.ClientSession())
    client = slack_client(slack_api.BOT_TOKEN, slack.url, session)
    messengers = {
        Platform.SLACK: SlackMessenger(client),
        Platform.TEAMS: teams_messenger,
        Platform.CONSOLE: ConsoleMessenger(console, live, core.clock),
    }
    ports = all_ports(core, messengers, threads={Platform.SLACK: SlackThreads(client)})
    posted = {Platform.SLACK: SlackPosted(client)}
    inbox.ports = replace(ports, adoption=replace(ports.adoption, channels=posted))
    page = Console(
        messages=console,
        live=live,
        inbox=inbox,
        store=core.store,
        count_passages=core.knowledge.index.count,
        document=core.knowledge.retriever.page,
        sources_status=_no_sources,
        all_channels=channels,
        channels_now=ports.chats.channels_named,
        workspace_name=core.workspace.name,
        clock=core.clock,
    )
    pages = ConsolePages(page, partial(ask_to_redeliver, store=core.store))
    app = build_app(
        webhooks=Webhooks({}, _nothing, None, core.clock),
        chats={Platform.SLACK: slack_inbound.handle, Platform.TEAMS: teams_inbound.handle},
        ready=_ready,
        add_console=pages.add_routes,
    )
    http = await stack.enter_async_context(TestClient(TestServer(app)))
    return Company(core, inbox, slack, teams, http)


async def _no_sources() -> list[Any]:
    return []


async def _nothing(_delivery: object) -> None: ...


async def _ready() -> str:
    return ""
