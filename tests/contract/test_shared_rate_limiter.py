"""Turns in a database: what several processes share of them, and what becomes of them when it is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import forgetting
from adapters.store.database import open_database
from adapters.store.tables import rate_limits
from adapters.store.work import SERVER_CLOCK, SqlRateLimiter
from core.model.running import PostingRate

PACE = PostingRate(3600.0)  # so that no machine is too busy
NOBODY = "postgresql://plumbline@127.0.0.1:9/plumbline"  # nobody listens on the discard port
UNIX_TIME: sa.ColumnElement[float] = sa.literal(1_800_000_000.0, sa.Double[float]())


@pytest.fixture
def clock(engine: AsyncEngine) -> sa.ColumnElement[float]:
    """The server's own, where there is a server."""
    return SERVER_CLOCK if engine.dialect.name == "postgresql" else UNIX_TIME


@pytest.fixture
async def processes(engine: AsyncEngine, clock: sa.ColumnElement[float]) -> AsyncIterator[list[SqlRateLimiter]]:
    other = open_database(engine.url.render_as_string(hide_password=False))
    yield [SqlRateLimiter(engine, clock), SqlRateLimiter(other, clock)]
    await other.dispose()


async def test_of_many_who_come_at_once_to_two_processes_one_has_his_turn_and_each_of_the_others_another(
    processes: list[SqlRateLimiter],
) -> None:
    asking = (
        limiter.take("here", f"{number} {ticket}", PACE)
        for number, limiter in enumerate(processes)
        for ticket in "abcd"
    )
    waits = sorted(await asyncio.gather(*asking))
    assert waits[0] == 0
    assert [round(wait / PACE.interval) for wait in waits] == list(range(8))


async def test_a_pause_that_one_process_is_asked_for_holds_for_the_others(processes: list[SqlRateLimiter]) -> None:
    ours, theirs = processes
    await ours.rest("here", 2 * PACE.interval, PACE)
    assert await theirs.take("here", "a", PACE) == pytest.approx(2 * PACE.interval, abs=60)


async def test_the_turn_of_a_process_that_died_is_there_for_whoever_goes_on_with_its_work(
    processes: list[SqlRateLimiter],
) -> None:
    dead, living = processes
    await dead.take("here", "a", PACE)
    kept = await dead.take("here", "b", PACE)
    await living.take("here", "c", PACE)
    assert await living.take("here", "b", PACE) == pytest.approx(kept, abs=60)


async def test_nothing_that_is_kept_says_whose_message_or_whose_channel_it_is(
    processes: list[SqlRateLimiter], engine: AsyncEngine
) -> None:
    for ticket in ("answer:U0ANNA", "record_feedback:U0ANNA"):
        await processes[0].take("slack:post:U0ANNA", ticket, PACE)
    async with engine.begin() as connection:
        (row,) = await connection.execute(sa.select(rate_limits))
    assert "U0ANNA" not in json.dumps([row.name, row.body])


async def test_a_lane_that_was_not_used_for_long_is_deleted(
    processes: list[SqlRateLimiter], engine: AsyncEngine
) -> None:
    await processes[0].take("here", "a", PACE)
    now = datetime.now(UTC) if engine.dialect.name == "postgresql" else datetime.fromtimestamp(1_800_000_000, UTC)
    assert await forgetting.delete_before(engine, {"events": now - timedelta(days=1)}) == {"events": 0}
    assert await forgetting.delete_before(engine, {"events": now + timedelta(days=1)}) == {"events": 1}
    assert await processes[1].take("here", "b", PACE) == 0


async def test_while_the_database_is_away_a_process_keeps_to_the_pace_by_itself() -> None:
    engine = open_database(NOBODY)
    alone = SqlRateLimiter(engine)
    assert await alone.take("here", "a", PACE) == 0
    await alone.answered("here", PACE)
    assert await alone.take("here", "b", PACE) == pytest.approx(PACE.interval, abs=60)
    await alone.rest("here", 3 * PACE.interval, PACE)
    assert await alone.take("here", "b", PACE) == pytest.approx(3 * PACE.interval, abs=60)
    await engine.dispose()
