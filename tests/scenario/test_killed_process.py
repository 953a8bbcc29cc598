"""A bot that is killed at any moment takes up its work where it was, loses nothing and says nothing twice.

Each test is one story with many deaths: every life gets a little further than the one before.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.databases import new_postgres_database
from tests.folders import copy_folder
from tests.scenario.home import Home, alarm
from tests.scenario.mortal_bot import INCIDENT_STEPS, Death, Moment
from tests.scenario.slack import WatchedSlack

SPEAKING_STEPS = (1, 3, 6, 7)  # the raw alert, its owner, its cause, the details

DEATHS = {
    "while a workflow is started": [Death(Moment.AFTER_START)],
    "before each step": [Death(Moment.BEFORE_STEP, step + 1) for step in range(len(INCIDENT_STEPS))],
    "after each step": [Death(Moment.AFTER_STEP, step + 1) for step in range(len(INCIDENT_STEPS))],
    "after each post": [Death(Moment.SAID, step) for step in SPEAKING_STEPS],
}
EACH_KIND = [
    Death(Moment.AFTER_START),
    Death(Moment.SAID, 1),
    Death(Moment.BEFORE_STEP, 4),
    Death(Moment.AFTER_STEP, 5),
    Death(Moment.SAID, 7),
]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.external)])
async def home(request: pytest.FixtureRequest, furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    copy_folder(furnished, tmp_path)
    async with WatchedSlack() as slack:
        if request.param == "sqlite":
            yield Home(tmp_path, slack)
        else:
            async with new_postgres_database(request.getfixturevalue("postgres")) as url:
                yield Home(tmp_path, slack, url)


@pytest.mark.parametrize(
    ("home", "deaths"),
    [
        pytest.param("sqlite", EACH_KIND, id="sqlite-once of each kind"),
        pytest.param("postgres", EACH_KIND, id="postgres-once of each kind"),
        *(pytest.param("sqlite", deaths, id=f"sqlite-{name}") for name, deaths in DEATHS.items()),
    ],
    indirect=["home"],
)
@pytest.mark.external  # a life or a death takes about a second
async def test_an_incident_is_told_whole_and_once_when_the_bot_is_killed(home: Home, deaths: list[Death]) -> None:
    async with home.life(Death(Moment.ASLEEP)) as bot:
        assert (await alarm(await bot.address()))[0] == 202
        bot.kill()
    for death in deaths:
        async with home.life(death) as bot:
            await bot.dies()
    async with home.life() as bot:
        await bot.finishes("details")
        await bot.stop()
    root, details = home.slack.messages
    assert "thread_ts" not in root
    assert details["thread_ts"] == root["ts"]
    shown = json.dumps(root["blocks"])
    assert "Payments" in shown, "its owner"
    assert "pool" in shown, "its cause"


@pytest.mark.external  # a life takes about a second
async def test_a_bot_that_is_never_killed_takes_the_steps_that_the_others_die_at(home: Home) -> None:
    async with home.life() as bot:
        assert (await alarm(await bot.address()))[0] == 202
        await bot.finishes("details")
        await bot.stop()
    assert tuple(bot.steps) == INCIDENT_STEPS
    assert len(home.slack.called("chat.postMessage")) + len(home.slack.called("chat.update")) == len(SPEAKING_STEPS)


@pytest.mark.external  # lives and deaths take about a second
async def test_a_question_is_answered_once_however_often_the_bot_is_killed(home: Home) -> None:
    async with home.life(Death(Moment.ASLEEP)) as bot:
        asked = await home.slack.asks(await bot.address(), "how do I roll back a canary?")
        bot.kill()
    for death in (Death(Moment.SAID, 1), Death(Moment.AFTER_STEP, 1)):
        async with home.life(death) as bot:
            await bot.dies()
    async with home.life() as bot:
        await bot.finishes("answer")
        await bot.stop()
    (answer,) = home.slack.replies(asked)
    assert "slip rollback" in json.dumps(answer["blocks"])
