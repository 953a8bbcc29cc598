"""The contract of ThreadReader, over the fake and every platform that can read a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import aiohttp
import pytest

from adapters.slack import channels
from adapters.slack.channels import SlackThreads
from adapters.slack.client import slack_client
from core.model.conversation import Place, Platform, Speaker, Turn
from core.model.errors import ChatUnavailable
from core.ports import ThreadReader
from tests.fakes import teams_connector
from tests.fakes.graph_server import graph_time
from tests.fakes.slack_api import BOT_TOKEN, BOT_USER, CHANNEL, PERSON, FakeSlack
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.threads import FakeThreads

BEGAN = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
LATER = BEGAN + timedelta(days=1)
THREAD = Place(Platform.SLACK, CHANNEL, f"{BEGAN.timestamp():.6f}")
TEAMS_THREAD = Place(
    Platform.TEAMS, teams_connector.CHANNEL, str(int(BEGAN.timestamp() * 1000)), teams_connector.TENANT
)


class World(Protocol):
    @property
    def thread(self) -> Place:
        """A thread that begins with what is said first."""
        ...

    @property
    def reader(self) -> ThreadReader: ...

    def say(self, minute: int, text: str, speaker: Speaker = Speaker.PERSON) -> None: ...

    def break_down(self) -> None: ...


class FakeWorld:
    thread = THREAD

    def __init__(self) -> None:
        self.reader = FakeThreads()

    def say(self, minute: int, text: str, speaker: Speaker = Speaker.PERSON) -> None:
        self.reader.said[THREAD].append((BEGAN + timedelta(minutes=minute), Turn(speaker, text)))

    def break_down(self) -> None:
        self.reader.down = True


class SlackWorld:
    thread = THREAD

    def __init__(self, slack: FakeSlack, reader: SlackThreads) -> None:
        self.reader = reader
        self._slack = slack

    def say(self, minute: int, text: str, speaker: Speaker = Speaker.PERSON) -> None:
        ts = f"{(BEGAN + timedelta(minutes=minute)).timestamp():.6f}"
        user = PERSON if speaker is Speaker.PERSON else BOT_USER
        message = {"channel": CHANNEL, "ts": ts, "user": user, "text": text, "thread_ts": THREAD.thread}
        self._slack.messages.append(message)

    def post(self, minute: int, **fields: Any) -> None:
        ts = f"{(BEGAN + timedelta(minutes=minute)).timestamp():.6f}"
        self._slack.messages.append({"channel": CHANNEL, "ts": ts, "thread_ts": THREAD.thread, **fields})

    def break_down(self) -> None:
        self._slack.refuse(503, "down", times=9)


@asynccontextmanager
async def _slack() -> AsyncIterator[SlackWorld]:
    async with FakeSlack() as slack, aiohttp.ClientSession() as session:
        yield SlackWorld(slack, SlackThreads(slack_client(BOT_TOKEN, slack.url, session)))


class TeamsWorld:
    thread = TEAMS_THREAD

    def __init__(self, teams: TeamsAdapter) -> None:
        self.reader = teams.threads
        self._teams = teams

    def say(self, minute: int, text: str, speaker: Speaker = Speaker.PERSON) -> None:
        at = BEGAN + timedelta(minutes=minute)
        application = {"id": teams_connector.APP_ID, "displayName": "Plumbline", "applicationIdentityType": "bot"}
        sender: dict[str, Any] = (
            {"from": {"application": application, "user": None}} if speaker is Speaker.PLUMBLINE else {}
        )
        self._teams.connector.graph.post(
            teams_connector.CHANNEL,
            str(int(at.timestamp() * 1000)),
            f"<p>{text}</p>",
            reply_to=self.thread.thread if minute else None,
            createdDateTime=graph_time(at),
            **sender,
        )

    def break_down(self) -> None:
        self._teams.connector.graph.refusals.refuse(503, times=9)


@asynccontextmanager
async def _teams() -> AsyncIterator[TeamsWorld]:
    async with open_teams("builtin") as teams:
        teams.connector.graph.consented = True
        await teams.deliver(teams.connector.activity(type="installationUpdate", action="add"))
        yield TeamsWorld(teams)


@asynccontextmanager
async def _fake() -> AsyncIterator[FakeWorld]:
    yield FakeWorld()


@pytest.fixture(params=[_fake, _slack, _teams], ids=["fake", "slack", "teams"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with request.param() as started:
        yield started


async def test_a_thread_is_read_from_its_beginning_in_order(world: World) -> None:
    world.say(0, "the till is slow")
    world.say(1, "since the deploy")
    world.say(2, "I am on it", Speaker.PLUMBLINE)
    assert await world.reader.earlier(world.thread, LATER, 9) == (
        Turn(Speaker.PERSON, "the till is slow"),
        Turn(Speaker.PERSON, "since the deploy"),
        Turn(Speaker.PLUMBLINE, "I am on it"),
    )


async def test_what_is_said_at_that_time_or_later_is_not_earlier(world: World) -> None:
    for minute in range(4):
        world.say(minute, f"minute {minute}")
    earlier = await world.reader.earlier(world.thread, BEGAN + timedelta(minutes=2), 9)
    assert [turn.text for turn in earlier] == ["minute 0", "minute 1"]


@pytest.mark.parametrize("limit", [2, 3, 5])
async def test_of_a_long_thread_its_beginning_and_its_end_are_read(world: World, limit: int) -> None:
    for minute in range(1_250 if isinstance(world, SlackWorld) else 450):
        world.say(minute, f"minute {minute}")
    earlier = [turn.text for turn in await world.reader.earlier(world.thread, LATER, limit)]
    last = 1_249 if isinstance(world, SlackWorld) else 449
    assert earlier == ["minute 0", *(f"minute {minute}" for minute in range(last + 2 - limit, last + 1))]


async def test_a_thread_in_slack_longer_than_is_read_keeps_its_beginning_and_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"PAGE": 10, "MAX_PAGES": 3, "END": 1_200.0}.items():
        monkeypatch.setattr(channels, name, value)
    async with _slack() as world:
        for minute in range(100):
            world.say(minute, f"minute {minute}")
        earlier = await world.reader.earlier(THREAD, BEGAN + timedelta(minutes=100), 5)
        assert [turn.text for turn in earlier] == [f"minute {minute}" for minute in (0, 96, 97, 98, 99)]


async def test_nothing_was_said_outside_a_thread_or_in_one_that_is_gone(world: World) -> None:
    world.say(0, "hello")
    assert await world.reader.earlier(replace(world.thread, thread=None), LATER, 9) == ()
    assert await world.reader.earlier(replace(world.thread, thread="17.1"), LATER, 9) == ()


async def test_a_thread_of_another_channel_is_another_thread(world: World) -> None:
    world.say(0, "hello")
    assert await world.reader.earlier(replace(world.thread, channel="C0PAYPRIV"), LATER, 9) == ()


async def test_a_platform_that_does_not_answer_is_unavailable(world: World) -> None:
    world.break_down()
    with pytest.raises(ChatUnavailable):
        await world.reader.earlier(world.thread, LATER, 9)


async def test_an_alert_in_slack_says_what_stands_in_its_attachments() -> None:
    alert = {"title": "TillSlow", "text": "p99 of the till is 4 s", "fallback": "TillSlow"}
    async with _slack() as world:
        world.post(0, bot_id="B0ALERT", subtype="bot_message", text="", attachments=[alert, {"fallback": "2 more"}])
        world.say(1, "since the deploy")
        assert [turn.text for turn in await world.reader.earlier(THREAD, LATER, 9)] == [
            "TillSlow\np99 of the till is 4 s\n2 more",
            "since the deploy",
        ]


async def test_a_thread_in_slack_says_what_was_forwarded_into_it() -> None:
    forwarded = {
        "is_share": True,
        "message_blocks": [{"message": {"blocks": [{"type": "markdown", "text": "p99: 4 s"}]}}],
    }
    async with _slack() as world:
        world.post(0, user="U0DANA", text="this again", attachments=[forwarded])
        assert [turn.text for turn in await world.reader.earlier(THREAD, LATER, 9)] == ["this again\np99: 4 s"]


async def test_a_message_that_was_deleted_in_slack_is_not_what_a_thread_began_with() -> None:
    async with _slack() as world:
        world.post(0, user="USLACKBOT", subtype="tombstone", text="This message was deleted.")
        world.say(1, "the till is slow")
        assert [turn.text for turn in await world.reader.earlier(THREAD, LATER, 9)] == ["the till is slow"]
