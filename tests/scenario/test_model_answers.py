"""A question in a chat that a language model answers: from the signed request to the message in the thread.

Everything is real but the model, the chats and the workflow engine: what the inbox takes is worked on at once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from bot.web.routes import Webhooks, build_app
from bot.wiring.application import ingest
from bot.wiring.ports import all_ports
from bot.work.inbox import TaskInbox
from core.answering.model_exam import FULL
from core.model.conversation import Channel, Platform
from core.model.errors import ModelUnavailable
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from handlers.common import post_message
from handlers.common.examine_model import ExaminedModel
from handlers.incidents.investigate_incident import STOPPED as INVESTIGATION_STOPPED
from handlers.questions.answer_question import STOPPED, WITHOUT_MODEL
from tests.fakes import adaptive_card, slack_api, slack_payloads, teams_connector
from tests.fakes.answering_script import choosing, prompt
from tests.fakes.block_kit import buttons, texts
from tests.fakes.language_model import ScriptedModel
from tests.fakes.slack_api import FakeSlack
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import Sent
from tests.scenario.canary_company import Inbox
from tests.scenario.company import SECRET_WORD, open_company
from tests.scenario.slack import inbound_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNSURE = "is a canary undone by night?"  # the evidence engine is not certain


class Patient(ScriptedModel):
    """Says what it is told to, once it `may`; counts the work that was ended before."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.may.set()
        self.ended = 0

    @contextmanager
    def hanging(self) -> Generator[None]:
        """It may say nothing, until somebody ends its work."""
        self.may.clear()
        self.ended = 0
        try:
            yield
        finally:
            self.may.set()
        assert self.ended == 1

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return await super().generate(request, on_text)


class Chat:
    """A channel in Slack with the bot in it, which also is in Teams. What its model says is set by each test."""

    def __init__(
        self, slack: FakeSlack, teams: TeamsAdapter, model: Patient, http: TestClient[web.Request, web.Application]
    ) -> None:
        self.model = model
        self.teams = teams
        self._slack = slack
        self._http = http
        self._seconds = count(1_773_480_600)
        self.thread = ""

    def follows(self, model: ScriptedModel) -> None:
        """From now on the model says what this one does; the next mention is a new thread."""
        self.model.script, self.model.odds = model.script, model.odds
        self.model.requests.clear()
        self.thread = ""

    @property
    def shown(self) -> dict[str, Any]:
        """The latest message."""
        return self._slack.messages[-1]

    async def presses(self, label: str) -> None:
        """Somebody presses a button of the latest message as soon as it has one."""
        async with asyncio.timeout(10):
            while not self._slack.messages or label not in buttons(self.shown.get("blocks")):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        button = buttons(self.shown["blocks"])[label]
        body = slack_payloads.interaction(slack_payloads.button_press(button, self.shown))
        headers = slack_payloads.signed(body, time.time()) | {"Content-Type": "application/x-www-form-urlencoded"}
        async with self._http.post("/slack/events", data=body, headers=headers) as response:
            assert response.status == 200, await response.text()

    async def asks(self, text: str) -> str:
        """What the bot says to a mention, as people see it."""
        ts = f"{next(self._seconds)}.000100"
        event = slack_payloads.mention(f"<@{slack_api.BOT_USER}> {text}", ts=ts)
        event |= {"thread_ts": self.thread} if self.thread else {}
        self.thread = self.thread or ts
        self._slack.messages.append({"channel": slack_api.CHANNEL, "ts": ts, "user": event["user"], "text": text})
        await self._post(event, f"Ev{ts}")
        reply = self._slack.messages[-1]
        assert reply["thread_ts"] == self.thread
        return "\n".join(texts(reply["blocks"]))

    async def _post(self, event: dict[str, Any], event_id: str) -> None:
        body = json.dumps(slack_payloads.event_callback(event, event_id=event_id))
        headers = slack_payloads.signed(body, time.time()) | {"Content-Type": "application/json"}
        async with self._http.post("/slack/events", data=body, headers=headers) as response:
            assert response.status == 200, await response.text()

    async def asks_and_stops(self, text: str) -> str:
        """What the bot says in the thread of a mention whose model would never end, within two seconds after “Stop”."""
        with self.model.hanging():
            asking = asyncio.create_task(self.asks(text))
            await self.presses("Stop")
            async with asyncio.timeout(2):
                await asking
        said = [each["blocks"] for each in self._slack.messages if each.get("thread_ts") == self.thread]
        assert all("Stop" not in buttons(blocks) for blocks in said)
        return "\n".join(text for blocks in said for text in texts(blocks))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chat(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chat]:
    folder, model = tmp_path_factory.mktemp("model"), Patient()
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(FakeSlack())
        teams = await stack.enter_async_context(
            open_teams("builtin", channels=[Channel("help", {Platform.TEAMS: teams_connector.CHANNEL})])
        )
        core = await stack.enter_async_context(open_company(folder))
        await ingest(core)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        messenger = SlackMessenger(slack_client(slack_api.BOT_TOKEN, slack.url, session))
        examined = ExaminedModel(model, lambda: FULL)
        await examined.recall()
        inbox = Inbox()
        inbox.ports = all_ports(
            replace(core, examined=examined),
            {Platform.SLACK: messenger, Platform.TEAMS: teams.messenger},
        )
        monkeypatch = stack.enter_context(pytest.MonkeyPatch.context())
        monkeypatch.setattr(inbox, "press", TaskInbox(core.store, lambda: None).press)
        monkeypatch.setattr(teams.inbox, "ask", inbox.ask)
        monkeypatch.setattr(teams.inbox, "press", inbox.press)
        monkeypatch.setattr(post_message, "SIGN_DELAY", 0.1)
        inbound = inbound_of(core, slack, inbox)
        stack.push_async_callback(inbound.close)
        app = build_app(
            webhooks=Webhooks({}, no_delivery, None, core.clock),
            chats={Platform.SLACK: inbound.handle},
            ready=ready,
            add_console=lambda app: None,
        )
        http = await stack.enter_async_context(TestClient(TestServer(app)))
        await inbound.start()
        yield Chat(slack, teams, model, http)


async def no_delivery(_: object) -> str | None:
    raise AssertionError("no webhook is sent here")


async def ready() -> str:
    return ""


async def test_what_the_model_writes_is_shown_with_its_source(chat: Chat) -> None:
    chat.follows(choosing("slip rollback"))
    said = await chat.asks(UNSURE)
    assert chat.model.requests
    assert "`slip rollback SERVICE`" in said
    assert "Rolling back a canary" in said
    assert "●" not in said, "nobody has judged an answer"
    assert not any(forged in said for forged in ("evil.example", "99 %", "!channel", "@channel", WITHOUT_MODEL))


async def test_a_press_of_stop_ends_the_work_of_the_model_within_two_seconds_and_leaves_what_was_found(
    chat: Chat,
) -> None:
    chat.follows(choosing("slip rollback"))
    said = await chat.asks_and_stops(UNSURE)
    assert STOPPED in said
    assert "Run `slip rollback SERVICE` to roll back a canary" in said


@pytest.mark.parametrize("command", ["rca", "triage"])
async def test_a_press_of_stop_ends_the_work_of_the_model_on_pasted_text_too(chat: Chat, command: str) -> None:
    chat.follows(ScriptedModel())
    said = await chat.asks_and_stops(f"{command} payment-gateway and ferry times are slow, everything returns errors")
    assert INVESTIGATION_STOPPED in said
    assert "Owner" in said


async def shows(teams: TeamsAdapter, is_shown: Callable[[Sent], bool]) -> Sent:
    """The message of Teams that shows something, as soon as one does."""
    async with asyncio.timeout(10):
        while not (shown := [each for each in teams.connector.messages.values() if is_shown(each)]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return shown[-1]


def can_be_stopped(message: Sent) -> bool:
    return bool(message.activity.get("attachments")) and "Stop" in titles(message.card)


def titles(card: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {action["title"]: action for action in card.get("actions", ())}


async def test_a_press_in_a_channel_of_teams_ends_the_work_of_the_model_within_two_seconds(chat: Chat) -> None:
    chat.follows(choosing("slip rollback"))
    teams, text = chat.teams, f"{teams_connector.MENTION} {UNSURE}\n"
    with chat.model.hanging():
        asking = asyncio.create_task(teams.deliver(teams.connector.activity(text=text)))
        shown = await shows(teams, can_be_stopped)
        pressed = titles(shown.card)["Stop"]["data"]
        value = {"action": {"type": "Action.Execute", "verb": "stop", "data": pressed}, "trigger": "manual"}
        press = teams.connector.activity(type="invoke", name="adaptiveCard/action", text=None, value=value)
        async with asyncio.timeout(2):
            assert (await teams.deliver(press)).status == 200
            await asking
    card = teams.connector.messages[shown.id].card
    assert STOPPED in "\n".join(adaptive_card.texts(card))
    assert "Stop" not in titles(card)


async def test_a_follow_up_is_understood_by_the_model(chat: Chat) -> None:
    chat.follows(choosing("6 January", question="When does the deployment freeze end?"))
    await chat.asks("When does the deployment freeze begin?")
    said = await chat.asks("and when does it end?")
    assert "6 January" in said


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The model is down.")


async def test_without_a_usable_model_the_documents_are_quoted_and_it_is_said(chat: Chat) -> None:
    chat.follows(ScriptedModel(down))
    said = await chat.asks(UNSURE)
    assert WITHOUT_MODEL in said


async def test_the_model_is_never_shown_what_the_place_may_not_read(chat: Chat) -> None:
    chat.follows(choosing("heliotrope"))
    said = await chat.asks("Which index is there to be rebuilt with a master key?")
    assert chat.model.requests
    assert SECRET_WORD not in said
    assert not any(SECRET_WORD in prompt(request) for request in chat.model.requests)
