"""Alerts that other bots post are neither lost nor answered twice when the bot is killed at any moment."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.door_secrets import KNOWN
from tests.fakes.slack_api import BOT_USER
from tests.scenario.alert_bots import ALERTS, GAUGES, assert_all_is_in_threads, bell, ours, root, send, sendings
from tests.scenario.home import NO_STORM, Home
from tests.scenario.mortal_bot import INCIDENT_STEPS, Death, Moment
from tests.scenario.slack import WatchedSlack

DEATHS = [
    Death(Moment.AFTER_START),
    Death(Moment.SAID, 1),
    Death(Moment.BEFORE_STEP, 3),
    Death(Moment.AFTER_STEP, len(INCIDENT_STEPS) - 1),
    Death(Moment.SAID, len(INCIDENT_STEPS)),
]


@pytest.fixture
async def home(furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    shutil.copytree(furnished, tmp_path, dirs_exist_ok=True)
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


@pytest.mark.external  # minutes
async def test_when_the_bot_is_killed_between_the_300_messages_none_is_lost_and_none_answered_twice(home: Home) -> None:
    sent = deque(sendings())
    async with aiohttp.ClientSession(headers=KNOWN) as session:
        for number_of_messages in (1, 2, 30, 50, 70, 100, len(sent)):
            async with home.life(constants=NO_STORM) as bot:
                address = await bot.address()
                await home.slack.delivers_again(address, 3)
                for _ in range(min(number_of_messages, len(sent))):
                    await send(sent.popleft(), home.slack, session, address)
                if not sent:
                    while any(len(answers(home.slack, number)) < 2 for number in range(GAUGES)):
                        count = len(ours(home.slack))
                        await home.slack.until(lambda count=count: len(ours(home.slack)) > count)
                    await bot.stop()
                    break
                cut_off = asyncio.create_task(send(sent[0], home.slack, session, address))
                await asyncio.sleep(0)
                bot.kill()
                with suppress(aiohttp.ClientError):
                    await cut_off
                if not sent[0].webhook:  # Slack delivers it again; the sender of a webhook tries again itself
                    sent.popleft()
    assert not sent
    assert_all_is_in_threads(home.slack)
    for number in range(GAUGES):
        kinds = Counter(each["text"].partition(":")[0] for each in answers(home.slack, number))
        assert set(kinds.values()) == {1}, kinds


def answers(slack: WatchedSlack, number: int) -> list[dict[str, Any]]:
    """What the bot says in the thread of the first message about an alert."""
    return [each for each in slack.replies(root(number)) if each.get("user") == BOT_USER]
