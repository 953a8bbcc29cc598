"""The walks through the code that CONTRIBUTING.md describes: each file that they name runs, and few others do."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

import pytest
from dbos import DBOS

from tests.scenario.application import RunningBot
from tests.scenario.slack import TIMEOUT
from tests.scenario.webhooks import alert

ROOT = Path(__file__).parents[2]
HANDLERS = f"{ROOT}/handlers/"
WALKS = dict(
    re.findall(
        r"^- \*\*(A question|An alert)\.\*\* (.*?)(?=^- \*\*|^#)",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
)
MOST = {"A question": 80, "An alert": 118}  # files of ours that run; fewer is better
MOST_STAYS, MOST_FILES = 31, 9  # for a reader of the handlers of the first `update_chats`

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


@dataclass
class Reading:
    """The stays in files of a reader who follows the calls of `update_chats` through the handlers.

    Each function is read once, when it is first called; then the reader goes back to its caller for the next one. Functions
    within functions and constructors are read where they are called.
    """

    stays: list[str] = field(default_factory=list[str])
    _read: set[CodeType] = field(default_factory=set[CodeType])
    _first: FrameType | None = None

    def follow(self, frame: FrameType) -> None:
        name = frame.f_code.co_qualname
        if frame.f_code in self._read or "<locals>" in name or name.endswith("__init__"):
            return
        if self._first is None and name == "update_chats":
            self._first = frame
        callers = list(_callers(frame))
        if self._first is not None and self._first in (frame, *callers):
            self._read.add(frame.f_code)
            self._stay(callers[0] if callers else frame)
            self._stay(frame)

    def _stay(self, frame: FrameType) -> None:
        if self.stays[-1:] != [frame.f_code.co_filename]:
            self.stays.append(frame.f_code.co_filename)


def _callers(frame: FrameType) -> Iterator[FrameType]:
    """Yield the handlers that called a function, the nearest first."""
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_filename.startswith(HANDLERS):
            yield caller
        caller = caller.f_back


@contextmanager
def watched(reading: Reading) -> Iterator[set[str]]:
    """Collect the files of ours in which a function runs until the block ends, in any thread."""
    ran: set[str] = set()
    ours: set[str] = set()
    submit = ThreadPoolExecutor.submit

    def notice(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code.co_filename)
            if frame.f_code.co_filename.startswith(HANDLERS):
                reading.follow(frame)

    def watched_submit(self: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        def run() -> Any:
            sys.setprofile(notice)
            try:
                return work(*arguments, **options)
            finally:
                sys.setprofile(None)

        return submit(self, run)

    with patch.object(ThreadPoolExecutor, "submit", watched_submit):
        sys.setprofile(notice)
        try:
            yield ours
        finally:
            sys.setprofile(None)
    files = {Path(path).relative_to(ROOT).as_posix() for path in ran.copy() if path.startswith(f"{ROOT}/")}
    ours |= {file for file in files if file.startswith(("bot/", "handlers/", "core/", "adapters/"))}


async def test_a_question_runs_the_files_that_its_walk_names(bot: RunningBot) -> None:
    await answered(bot, "When is the deployment freeze?")
    await until_idle()  # what only runs at the start has run
    with watched(Reading()) as ran:
        await answered(bot, "How do I roll back a canary?")
    assert named("A question") - ran == set()
    with watched(Reading()) as ran_again:
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
    reading = Reading()
    with watched(reading) as ran:
        await investigated(bot, "walk")
    assert named("An alert") - ran == set()
    assert len(ran) <= MOST["An alert"], sorted(ran)
    assert len(reading.stays) <= MOST_STAYS, reading.stays
    assert len(set(reading.stays)) <= MOST_FILES, reading.stays
