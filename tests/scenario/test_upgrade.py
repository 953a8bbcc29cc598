"""The state that an earlier version left, with work under way, is migrated; its pickled workflows are begun anew.

`previous_version/` holds what version 1 of the workflows left at schema revision 0006: a bot was killed in the third step
of one incident's investigation, and the task of a second one was not started. It was made with that revision's own
`test_killed_process.Home` (`Death(Moment.ASLEEP)`, an alarm, `Death(Moment.BEFORE_STEP, 3)`), one more `open_incident`,
and `sqlite3.Connection.iterdump` of both databases; the message that was posted then is one that this chat does not know.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.work import engine
from core.model.errors import ConfigurationError
from tests.scenario.home import Home, furnished
from tests.scenario.mortal_bot import INCIDENT_STEPS
from tests.scenario.slack import WatchedSlack

LEFT = Path(__file__).with_name("previous_version")

__all__ = ["furnished"]  # the fixture


@pytest.fixture
async def home(furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    shutil.copytree(furnished, tmp_path, dirs_exist_ok=True)
    for left in sorted(LEFT.glob("*.sql")):
        database = tmp_path / "data" / f"{left.stem}.sqlite"
        database.unlink(missing_ok=True)
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(left.read_text(encoding="utf-8"))
    async with WatchedSlack() as slack:
        yield Home(tmp_path, slack)


async def test_work_that_an_earlier_version_pickled_is_refused_and_begun_anew_where_that_is_asked_for(
    home: Home, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"3 unfinished workflows.* PLUMBLINE_BEGIN_ANEW=1"):
        await engine.launch(f"sqlite:///{home.data / 'workflows.sqlite'}", "replica")
    assert sorted(await both_ends(Home(tmp_path, home.slack, PLUMBLINE_BEGIN_ANEW="1"))) == sorted(2 * INCIDENT_STEPS)


async def both_ends(home: Home) -> list[str]:
    """The steps of the bot until both incidents are told whole."""
    async with home.life() as bot:
        await bot.finishes("details")
        bot.steps.append("the first one is whole")
        seen = len(bot.steps)
        while "details" not in bot.steps[seen:]:
            report = await bot._report()
            assert report is not None
            bot.steps.append(report)
        await bot.stop()
    bot.steps.remove("the first one is whole")
    roots = [message for message in home.slack.messages if "thread_ts" not in message]
    assert len(roots) == 2
    assert len(home.slack.messages) - len(roots) == 2
    assert any("Payments" in json.dumps(root["blocks"]) for root in roots), "the owner of the first one"
    return [step for step in bot.steps if step in INCIDENT_STEPS]
