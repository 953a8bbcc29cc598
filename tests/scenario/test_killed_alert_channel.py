"""Alerts that other bots post are neither lost nor answered twice when the bot is killed at any moment."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import aiohttp
import pytest

from adapters.chat import Budget
from adapters.teams.activity import THREAD_SEPARATOR
from tests.fakes.adaptive_card import texts
from tests.fakes.door_secrets import KNOWN
from tests.fakes.slack_api import BOT_USER
from tests.fakes.teams_connector import CHANNEL, TeamsConnector
from tests.folders import copy_folder
from tests.scenario.alert_bots import (
    ALERTS,
    GAUGES,
    Sending,
    assert_all_is_in_threads,
    bell,
    ours,
    root,
    send,
    sendings,
    show_in_teams,
    sound,
    teams_id,
)
from tests.scenario.home import NO_STORM, Home
from tests.scenario.mortal_bot import INCIDENT_STEPS, TIMEOUT, Death, Moment, MortalBot
from tests.scenario.slack import WatchedSlack
from tests.scenario.teams_home import TeamsHome, is_added

DEATHS = [
    Death(Moment.AFTER_START),
    Death(Moment.SAID, 1),
    Death(Moment.BEFORE_STEP, 3),
    Death(Moment.AFTER_STEP, len(INCIDENT_STEPS) - 1),
    Death(Moment.SAID, len(INCIDENT_STEPS)),
]

AT_ONCE = {
    "adapters.posted.teams.PAUSE": 0.05,
    "adapters.teams.chat.BUDGET": Budget(post=0.0, edit=0.0, burst=7),
}


@pytest.fixture
async def home(furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    copy_folder(furnished, tmp_path)
    async with WatchedSlack() as slack:
        yield Home(tmp_path, slack)


@pytest.mark.external  # a life or a death takes about a second
async def test_an_alert_is_answered_once_in_its_thread_when_the_bot_is_killed(home: Home) -> None:
    message = bell("Firing: TillSlow", Severity="critical", Service="till")
    async with home.life(Death(Moment.ASLEEP)) as bot:
        ts = await home.slack.posts(await bot.address(), ALERTS, **message)
        bot.kill()
    event = {**home.slack.message(ALERTS, ts), "channel_type": "channel"}
    for death in DEATHS:
        async with home.life(death) as bot:
            await bot.dies()
    async with home.life() as bot:
        await home.slack.delivers(await bot.address(), event)  # Slack sends again what was not acknowledged
        await bot.finishes("details")
        await bot.stop()
    ours = [each for each in home.slack.messages if each.get("user") == BOT_USER]
    assert [each["thread_ts"] for each in ours] == [ts, ts], "the incident and its details, each once"


class _BusySlack:
    """The channel of the bots in Slack."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._slack = home.slack

    def life(self) -> AbstractAsyncContextManager[MortalBot]:
        return self._home.life(constants=NO_STORM)

    async def begin(self, address: str) -> None:
        await self._slack.delivers_again(address, 3)

    async def send(self, sending: Sending, session: aiohttp.ClientSession, address: str) -> None:
        await send(sending, self._slack, session, address)

    async def until_more(self) -> None:
        count = len(ours(self._slack))
        await self._slack.until(lambda: len(ours(self._slack)) > count)

    def answers(self, number: int) -> list[str]:
        """What the bot says in the thread of the first message about an alert."""
        said = [each for each in self._slack.replies(root(number)) if each.get("user") == BOT_USER]
        return [each["text"].partition(":")[0] for each in said]

    def assert_all_is_in_threads(self) -> None:
        assert_all_is_in_threads(self._slack)


class _BusyTeams:
    """The channel of the bots in Teams, which the bot reads through Graph."""

    def __init__(self, home: TeamsHome) -> None:
        self._home = home
        self._teams = home.teams
        self._is_added = False
        self._sent = set[str]()

    def life(self) -> AbstractAsyncContextManager[MortalBot]:
        return self._home.life(more=NO_STORM | AT_ONCE)

    async def begin(self, address: str) -> None:
        if not self._is_added:
            await is_added(self._home, address)
        self._is_added = True

    async def send(self, sending: Sending, session: aiohttp.ClientSession, address: str) -> None:
        if sending.webhook:
            await sound(sending.webhook, session, address)
            return
        if sending.fields.get("ts") in self._sent:  # a sender edits what the bot has seen
            while not self._answers(sending.fields["ts"]):
                await self.until_more()
        self._sent.add(sending.fields.get("ts", ""))
        show_in_teams(sending, self._teams.graph, CHANNEL)

    async def until_more(self) -> None:
        count = len(self._teams.sent)
        async with asyncio.timeout(TIMEOUT):
            while len(self._teams.sent) == count:  # noqa: ASYNC110 -- nothing tells it
                await asyncio.sleep(0.05)

    def answers(self, number: int) -> list[str]:
        return self._answers(root(number))

    def _answers(self, ts: str) -> list[str]:
        said = self._home.said(f"{CHANNEL}{THREAD_SEPARATOR}{teams_id(ts)}")
        return [texts(each.card)[0].partition(":")[0] for each in said]

    def assert_all_is_in_threads(self) -> None:
        assert self._home.said(CHANNEL) == []
        posted = self._teams.graph.messages[CHANNEL].items()
        chatter = {id_ for id_, each in posted if (each["from"]["application"]["id"]).startswith("A0CHAT")}
        assert not chatter & {each.conversation.partition(THREAD_SEPARATOR)[2] for each in self._teams.sent}


@pytest.fixture(params=["slack", "teams"])
async def channel(
    request: pytest.FixtureRequest, furnished: Path, tmp_path: Path
) -> AsyncIterator[_BusySlack | _BusyTeams]:
    copy_folder(furnished, tmp_path)
    config = tmp_path / "company" / "plumbline.yaml"
    if request.param == "slack":
        async with WatchedSlack() as slack:
            yield _BusySlack(Home(tmp_path, slack))
        return
    config.write_text(config.read_text().replace("slack: C0ALERTS", f'teams: "{CHANNEL}"'))
    async with TeamsConnector() as connector:
        connector.graph.consented = True
        yield _BusyTeams(TeamsHome(tmp_path, connector))


@pytest.mark.external  # minutes
async def test_when_the_bot_is_killed_between_the_300_messages_none_is_lost_and_none_answered_twice(
    channel: _BusySlack | _BusyTeams,
) -> None:
    sent = deque(sendings())
    async with aiohttp.ClientSession(headers=KNOWN) as session:
        for number_of_messages in (1, 2, 30, 50, 70, 100, len(sent)):
            async with channel.life() as bot:
                address = await bot.address()
                await channel.begin(address)
                for _ in range(min(number_of_messages, len(sent))):
                    await channel.send(sent.popleft(), session, address)
                if not sent:
                    while any(len(channel.answers(number)) < 2 for number in range(GAUGES)):
                        await channel.until_more()
                    await bot.stop()
                    break
                cut_off = asyncio.create_task(channel.send(sent[0], session, address))
                await asyncio.sleep(0)
                bot.kill()
                with suppress(aiohttp.ClientError):
                    await cut_off
                if not sent[0].webhook:  # the chat still has it; the sender of a webhook tries again itself
                    sent.popleft()
    assert not sent
    channel.assert_all_is_in_threads()
    for number in range(GAUGES):
        kinds = Counter(channel.answers(number))
        assert set(kinds.values()) == {1}, (number, kinds)
