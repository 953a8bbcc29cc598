"""Alerts that other bots post are neither lost nor answered twice when the bot is killed at any moment."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.slack_api import BOT_USER
from tests.scenario.alert_bots import ALERTS, bell
from tests.scenario.home import Home, furnished
from tests.scenario.mortal_bot import INCIDENT_STEPS, Death, Moment
from tests.scenario.slack import WatchedSlack

__all__ = ["furnished"]  # the fixture

DEATHS = [
    Death(Moment.AFTER_START),
    Death(Moment.SAID, 1),
    Death(Moment.BEFORE_STEP, 3),
    Death(Moment.AFTER_STEP, len(INCIDENT_STEPS) - 1),
    Death(Moment.SAID, 8),
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
