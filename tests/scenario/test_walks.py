"""The walks through the code that CONTRIBUTING.md describes: each file that they name runs, and few others do."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from dbos import DBOS

from tests.benchmarks.walk import PRODUCT, profiled
from tests.scenario.application import RunningBot
from tests.scenario.slack import TIMEOUT
from tests.scenario.webhooks import alert

ROOT = Path(__file__).parents[2]
WALKS = dict(
    re.findall(
        r"^- \*\*(A question|An alert)\.\*\* (.*?)(?=^- \*\*|^#)",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
)
MOST = {"A question": 80, "An alert": 118}  # files of ours that run; fewer is better

pytestmark = pytest.mark.asyncio(loop_scope="session")


def named(walk: str) -> set[str]:
    """Return the files that a walk names, each relative to the root of the repository."""
    found: set[str] = set()
    folder = ""
    told, _, _ = WALKS[walk].partition("In the thread, ")  # which is another walk
    for name in re.findall(r"`([\w/…]+\.py)`", told):
        path = name.replace("…", "slack") if "/" in name else f"{folder}/{name}"
        folder = path.rpartition("/")[0]
        found.add(path)
    return found


@contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the files of ours in which a function runs until the block ends, in any thread."""
    ran: set[str] = set()
    ours: set[str] = set()

    def notice(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code.co_filename)

    with profiled(notice):
        yield ours
    ours |= {Path(path).relative_to(ROOT).as_posix() for path in ran.copy() if path.startswith(PRODUCT)}


async def test_a_question_runs_the_files_that_its_walk_names(bot: RunningBot) -> None:
    await answered(bot, "When is the deployment freeze?")
    await until_idle()  # what only runs at the start has run
    with watched() as ran:
        await answered(bot, "How do I roll back a canary?")
    assert named("A question") - ran == set()
    with watched() as ran_again:
        await answered(bot, "When does the deployment freeze begin?")
    walk = ran & ran_again  # what runs in the background of one question is not a part of it
    assert len(walk) <= MOST["A question"], sorted(walk)


async def until_idle() -> None:
    async with asyncio.timeout(TIMEOUT):
        # The engine tells nobody when it is idle.
        while await DBOS.list_workflows_async(status=["ENQUEUED", "PENDING"]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def investigated(bot: RunningBot, group: str) -> None:
    """Send an alert and wait until the work on it is over, not by the page, which would run files of its own."""
    incident_id = str(await bot.deliver(group, alert(group)))
    async with asyncio.timeout(TIMEOUT):
        # The engine tells nobody when a workflow ends.
        while all(incident_id not in each.workflow_id for each in await DBOS.list_workflows_async(status="SUCCESS")):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def answered(bot: RunningBot, question: str) -> None:
    asked = await bot.slack.asks(bot.address, question)
    await bot.slack.until(lambda: "Helpful" in str(bot.slack.replies(asked)))  # a sign of work may come first


async def test_an_alert_runs_the_files_that_its_walk_names(bot: RunningBot) -> None:
    await answered(bot, "When is the deployment freeze?")  # what only runs at the start has run
    await until_idle()
    with watched() as ran:
        await investigated(bot, "walk")
    assert named("An alert") - ran == set()
    assert len(ran) <= MOST["An alert"], sorted(ran)
