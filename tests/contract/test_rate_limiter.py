"""Turns to write in a channel: nobody comes too early, and the order in which they were asked for stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.chat import LocalRateLimiter
from adapters.store.work import SqlRateLimiter
from core.model.running import LATE, PostingRate
from core.ports import RateLimiter
from tests.contract.conftest import DATABASES
from tests.databases import database, new_postgres_database, sqlite_url

PACE, BURST = PostingRate(1.0), PostingRate(2.0, saved=4.0)


class Time:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def now(self) -> float:
        return self.at


def on(engine: AsyncEngine, time: Time) -> SqlRateLimiter:
    return SqlRateLimiter(engine, sa.bindparam("now", callable_=time.now, type_=sa.Double))


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=["memory", *DATABASES])
async def limiter(request: pytest.FixtureRequest, tmp_path: Path, time: Time) -> AsyncIterator[RateLimiter]:
    if request.param == "memory":
        yield LocalRateLimiter(time.now)
    elif request.param == "sqlite":
        async with database(sqlite_url(tmp_path)) as engine:
            yield on(engine, time)
    else:
        async with new_postgres_database(request.getfixturevalue("postgres")) as url, database(url) as engine:
            yield on(engine, time)


async def waits(limiter: RateLimiter, tickets: str, pace: PostingRate = PACE, lane: str = "here") -> list[float]:
    return [await limiter.take(lane, ticket, pace) for ticket in tickets]


async def test_each_has_the_next_turn_and_asking_again_costs_none(limiter: RateLimiter, time: Time) -> None:
    assert await waits(limiter, "abcbc") == pytest.approx([0, 1, 2, 1, 2])
    time.at += 1
    assert await waits(limiter, "cb") == pytest.approx([1, 0])


async def test_a_turn_that_was_taken_is_used_up(limiter: RateLimiter, time: Time) -> None:
    assert await waits(limiter, "aa") == pytest.approx([0, 1])


async def test_a_lane_knows_nothing_of_another(limiter: RateLimiter) -> None:
    assert [*await waits(limiter, "a"), *await waits(limiter, "b", lane="there")] == [0, 0]


async def test_after_a_rest_as_many_as_were_saved_come_at_once_and_no_more(limiter: RateLimiter, time: Time) -> None:
    assert await waits(limiter, "abcde", BURST) == pytest.approx([0, 0, 0, 2, 4])
    for ticket in "de":
        time.at += 2
        assert await waits(limiter, ticket, BURST) == [0]
    time.at += 4
    assert await waits(limiter, "fgh", BURST) == pytest.approx([0, 0, 2])


async def test_whoever_comes_late_takes_the_next_moment_and_nobody_overtakes_the_pace(
    limiter: RateLimiter, time: Time
) -> None:
    await waits(limiter, "abc")
    time.at += 1.75
    assert await waits(limiter, "b") == [0]
    assert await waits(limiter, "c") == pytest.approx([1])


async def test_a_turn_counts_from_the_answer_of_the_platform(limiter: RateLimiter, time: Time) -> None:
    await waits(limiter, "abc")
    time.at += 0.75
    await limiter.answered("here", PACE)
    assert await waits(limiter, "bc") == pytest.approx([1, 2]), "they are told so before their turn would have been"


async def test_a_pause_that_the_platform_asks_for_holds_for_all_and_keeps_the_order(
    limiter: RateLimiter, time: Time
) -> None:
    await waits(limiter, "abc")
    await limiter.rest("here", 30, PACE)
    assert await waits(limiter, "dcba") == pytest.approx([32, 31, 30, 33])
    assert await waits(limiter, "a", lane="there") == [0]


async def test_a_pause_that_is_asked_for_twice_is_one(limiter: RateLimiter, time: Time) -> None:
    await waits(limiter, "ab")
    await limiter.rest("here", 30, PACE)
    time.at += 0.25
    await limiter.rest("here", 30, PACE)
    assert await waits(limiter, "b") == pytest.approx([30])
    await limiter.rest("here", 5, PACE)
    assert await waits(limiter, "b") == pytest.approx([30]), "a shorter one is a part of it"


async def test_a_lane_that_nobody_used_can_rest(limiter: RateLimiter, time: Time) -> None:
    await limiter.rest("here", 30, PACE)
    assert await waits(limiter, "ab") == pytest.approx([30, 31])


async def test_a_turn_that_nobody_takes_is_lost_after_a_minute(limiter: RateLimiter, time: Time) -> None:
    assert await waits(limiter, "ab") == pytest.approx([0, 1])
    time.at += 2 + LATE
    assert await waits(limiter, "cb") == pytest.approx([0, 1])


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
async def test_a_clock_that_jumps_makes_nobody_wait_longer_and_nobody_come_together(
    limiter: RateLimiter, time: Time, jump: float
) -> None:
    assert await waits(limiter, "abcd") == pytest.approx([0, 1, 2, 3])
    time.at += jump
    taken: list[float] = []
    waiting = set("bcd")
    while waiting:
        again = {ticket: await limiter.take("here", ticket, PACE) for ticket in sorted(waiting)}
        taken += [time.at for wait in again.values() if not wait]
        waiting = {ticket for ticket, wait in again.items() if wait}
        time.at += min((wait for wait in again.values() if wait), default=0.0)
    assert taken[-1] - taken[0] <= 2.001
    assert taken[0] - (1_800_000_000 + jump) <= 1.001
    assert all(later - earlier > 0.999 for earlier, later in pairwise(taken))
