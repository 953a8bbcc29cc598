"""Workflows that ended long ago are deleted with all their steps, wherever the engine keeps them; others go on.

They run in a process of their own: there is one engine in a process, and it may be that of another test's bot.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
import sqlalchemy as sa
from dbos import DBOS
from dbos._dbos import _get_or_create_dbos_registry

from adapters.store.database import truncate_log
from bot.work import engine as workflow_engine
from bot.work import workflows
from bot.work.schedules import forget_workflows
from bot.work.workflows import Workflows
from core.ports import Task
from tests.databases import new_postgres_database, sqlite_url

DAY = timedelta(days=1)
STEPS = "operation_outputs"  # the engine's table of what each step came to


class Waiting:
    """Handlers: knowledge is read at once, and an incident is presented when the test says so."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def done(self, *_: object) -> None:
        return

    async def present(self, *_: object) -> None:
        self.begun.set()
        await self.may_end.wait()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.external)])
async def address(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """Of an empty database for the engine."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
    else:
        async with new_postgres_database(request.getfixturevalue("postgres")) as url:
            yield url


@asynccontextmanager
async def running(address: str, handlers: Waiting) -> AsyncIterator[Workflows]:
    workflow_engine.configure(address, "replica")
    done = handlers.done
    try:
        with patch.multiple(
            workflows, ingest_all=done, learn_owners=done, triage_again=done, update_chats=handlers.present
        ):
            flows = Workflows(Mock(), Mock(), asyncio.get_running_loop())
            await workflow_engine.launch(address, "replica")
            yield flows
    finally:
        handlers.may_end.set()
        await workflow_engine.stop()
        # The engine holds one instance per process, and has no public way to forget it.
        _get_or_create_dbos_registry().instance_info_map.clear()


Scenario = Callable[[str], Coroutine[Any, Any, None]]
Passes = Callable[[Scenario], Awaitable[None]]


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        yield pool


@pytest.fixture
def passes(process: ProcessPoolExecutor, address: str) -> Passes:
    """Run a scenario in the other process, on an empty database."""

    async def run_there(scenario: Scenario) -> None:
        await asyncio.get_running_loop().run_in_executor(process, run, scenario, address)

    return run_there


def run(scenario: Scenario, address: str) -> None:
    asyncio.run(scenario(address))


async def test_finished_workflows_go_with_their_steps_and_those_under_way_stay(passes: Passes) -> None:
    await passes(finished_and_under_way)


async def finished_and_under_way(address: str) -> None:
    handlers = Waiting()
    async with running(address, handlers) as flows:
        for number in range(3):
            await (await flows.start(Task(f"done {number}", "ingest_knowledge", "", {})))
        waits = await flows.start(Task("under way", "triage_again", "i1", {}))
        await handlers.begun.wait()
        assert await workflow_engine.forget_before(datetime.now(UTC) - DAY) == 0
        assert await kept(address) == {"done 0", "done 1", "done 2", "under way"}
        assert await workflow_engine.forget_before(datetime.now(UTC) + DAY) == 3
        assert [each.workflow_id for each in await DBOS.list_workflows_async()] == ["under way"]
        assert await kept(address) == {"under way"}
        handlers.may_end.set()
        await waits
        assert await kept(address) == {"under way"}


async def test_more_workflows_than_are_deleted_at_once_all_go(passes: Passes) -> None:
    await passes(more_than_at_once)


async def more_than_at_once(address: str) -> None:
    with patch.object(workflow_engine, "PART", 2):
        async with running(address, Waiting()) as flows:
            for number in range(5):
                await (await flows.start(Task(f"done {number}", "ingest_knowledge", "", {})))
            assert await workflow_engine.forget_before(datetime.now(UTC) + DAY) == 5
            assert await DBOS.list_workflows_async() == []


async def test_the_workflows_of_what_is_forgotten_go_while_the_bot_runs(passes: Passes) -> None:
    await passes(forgotten_while_running)


async def forgotten_while_running(address: str) -> None:
    async with running(address, Waiting()) as flows:
        for key in ("asked by U1", "kept"):
            await (await flows.start(Task(key, "ingest_knowledge", "", {})))
        await asyncio.to_thread(forget_workflows, address, ["asked by U1", "never was"])
        await asyncio.to_thread(truncate_log, address)
        assert await kept(address) == {"kept"}
        if address.startswith("sqlite"):
            file = Path(address.removeprefix("sqlite:///"))
            parts = await asyncio.to_thread(lambda: [each.read_bytes() for each in file.parent.glob(f"{file.name}*")])
            assert b"asked by U1" not in b"".join(parts)


async def test_where_no_engine_ever_was_there_is_nothing_to_forget(passes: Passes) -> None:
    await passes(forgotten_without_an_engine)


async def forgotten_without_an_engine(address: str) -> None:
    await asyncio.to_thread(forget_workflows, address, ["asked"])
    async with running(address, Waiting()) as flows:
        await (await flows.start(Task("asked", "ingest_knowledge", "", {})))
        assert await kept(address) == {"asked"}


async def kept(address: str) -> set[str]:
    """The workflows of which a step is kept."""

    def read() -> set[str]:
        url = sa.make_url(address)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url)
        try:
            schema = "dbos" if url.get_backend_name() == "postgresql" else None
            steps = sa.table(STEPS, sa.column("workflow_uuid"), schema=schema)
            with engine.connect() as connection:
                return set(connection.execute(sa.select(steps.c.workflow_uuid)).scalars())
        finally:
            engine.dispose()

    return await asyncio.to_thread(read)
