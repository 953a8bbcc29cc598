"""The database crashes, the disk is full, the model hangs, the clock jumps: nothing is lost, and an operator sees it."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapters.clock import SystemClock
from bot.server import NO_ANSWER
from tests.databases import own_postgres_server
from tests.external.slack_emulator import eventually
from tests.fakes import llama_server
from tests.folders import copy_folder
from tests.scenario.home import NO_STORM, Home, alarm, furnished
from tests.scenario.slack import WatchedSlack

pytestmark = pytest.mark.external

__all__ = ["furnished"]  # the fixture

TIMEOUT = 60.0  # seconds until what is awaited must have happened
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
IMPATIENT = "models: {use: always, question: {seconds: 1}, investigation: {seconds: 2}}\n"


@pytest.fixture
def folder(furnished: Path, tmp_path: Path) -> Path:
    copy_folder(furnished, tmp_path)
    return tmp_path


@pytest.fixture
async def slack() -> AsyncIterator[WatchedSlack]:
    async with WatchedSlack() as slack:
        yield slack


async def test_a_database_that_crashes_in_the_middle_loses_nothing(folder: Path, slack: WatchedSlack) -> None:
    with own_postgres_server() as server:
        async with Home(folder, slack, server.url).life(constants=NO_STORM) as bot:
            address = await bot.address()
            await becomes(address, 200)
            assert (await alarm(address, "before"))[0] == 202
            await bot.finishes("triage")
            server.stop()
            refused(*await alarm(address, "after"))
            assert await said(f"{address}readyz") == (503, f"{NO_ANSWER}\n")
            assert await figure(address, "plumbline_database_up") == 0
            server.start()
            await becomes(address, 200)
            assert (await alarm(address, "after"))[0] == 202
            assert all("pool" in each for each in await told_once(slack, 2)), "their cause"
            await bot.stop()


async def test_a_full_disk_refuses_what_it_cannot_keep(folder: Path, slack: WatchedSlack) -> None:
    home = Home(folder, slack)
    async with home.life(constants=NO_STORM) as bot:
        address = await bot.address()
        await becomes(address, 200)
        assert (await alarm(address, "before"))[0] == 202
        await bot.finishes("triage")
        logs = [path.stat().st_size for path in home.data.glob("*-wal")]
        assert min(logs) > home.log.stat().st_size, "the bot could not write its own log"
        resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, (min(logs), resource.RLIM_INFINITY))  # no file may grow beyond
        refused(*await alarm(address, "after"))
        await becomes(address, 503)
        resource.prlimit(bot.pid, resource.RLIMIT_FSIZE, UNLIMITED)
        await becomes(address, 200)
        assert (await alarm(address, "after"))[0] == 202
        assert all("pool" in each for each in await told_once(slack, 2)), "their cause"
        await bot.stop()


async def test_a_model_that_hangs_leaves_the_incident_and_the_question_to_the_evidence(
    folder: Path, slack: WatchedSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_server, "CONTEXT", 32_768)
    async with llama_server.fake_llama_server() as model:
        model.waits = asyncio.Event()  # in the middle of every answer, and says that it is well
        config = folder / "company/plumbline.yaml"
        config.write_text(config.read_text() + IMPATIENT)
        home = Home(folder, slack, PLUMBLINE_LLM_URL=model.url)
        async with home.life() as bot:
            address = await bot.address()
            await becomes(address, 200)
            asked = await slack.asks(address, "how do I roll back a canary?")
            assert (await alarm(address, "only"))[0] == 202
            await slack.until(lambda: "slip rollback" in shown(slack.replies(asked)))
            await bot.finishes("details")
            incident = shown(
                [each for each in slack.messages if each.get("thread_ts") != asked and each["ts"] != asked]
            )
            assert "Payments" in incident
            assert "pool" in incident
            await bot.stop()


class JumpingClock(SystemClock):
    """Wrong by as many hours as the link `hours` in the folder of the data points at: a link changes in one piece."""

    def now(self) -> datetime:
        wrong_by = Path(os.environ["PLUMBLINE_DATA_DIR"], "hours").readlink()
        return super().now() + timedelta(hours=float(str(wrong_by)))

    @staticmethod
    def jump(data: Path, hours: int) -> None:
        (data / "next").symlink_to(str(hours))
        (data / "next").replace(data / "hours")


async def test_a_clock_that_jumps_an_hour_ahead_and_back_loses_nothing(folder: Path, slack: WatchedSlack) -> None:
    home = Home(folder, slack)
    JumpingClock.jump(home.data, 0)
    async with home.life(constants={"bot.wiring.application.SystemClock": JumpingClock, **NO_STORM}) as bot:
        address = await bot.address()
        for group, wrong in (("before", 1), ("ahead", -1), ("behind", 0)):
            bot.steps.clear()
            assert (await alarm(address, group))[0] == 202
            await bot.finishes("triage")
            JumpingClock.jump(home.data, wrong)
        assert (await alarm(address, "after"))[0] == 202
        await told_once(slack, 4)  # with the cause, where the clock was right
        await bot.stop()


async def said(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def becomes(address: str, status: int) -> None:
    """Wait until the bot says so of its readiness."""

    async def look() -> bool | None:
        return (await said(f"{address}readyz"))[0] == status or None

    await eventually(look, f"/readyz says {status}", TIMEOUT)


async def figure(address: str, name: str, **labels: str) -> float:
    """The sum of a metric over its samples with these labels."""
    _, metrics = await said(f"{address}metrics")
    return sum(
        sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def refused(status: int, body: str) -> None:
    """With a sentence for whoever reads the sender's log."""
    assert status == 503, body
    assert "database cannot be read or written" in body


def shown(messages: list[dict[str, object]]) -> str:
    return json.dumps(messages)


async def told_once(slack: WatchedSlack, count: int) -> list[str]:
    """The messages of so many incidents, each with its owner, once their details stand in their threads."""

    def roots() -> list[dict[str, object]]:
        return [message for message in slack.messages if "thread_ts" not in message]

    await slack.until(lambda: len(roots()) == count and all(slack.replies(str(each["ts"])) for each in roots()))
    assert len(slack.messages) == 2 * count
    told = [shown([each]) for each in roots()]
    assert all("Payments" in each for each in told)
    return told
