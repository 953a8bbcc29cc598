"""Nightly jobs run once each night, also those that were missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from bot.work.schedules import (
    END_QUIET_HOURS,
    INGEST,
    NIGHTLY,
    RECALIBRATE,
    RETAIN,
    WATCH,
    Ticks,
    ask_for_nightly,
    keep_schedules,
)
from core.model.errors import StoreUnavailable
from core.ports import Task
from tests.fakes.clock import FakeClock
from tests.fakes.store import InMemoryStore

MIDNIGHT = datetime(2026, 3, 14, tzinfo=UTC)
LOOK = timedelta(minutes=5)


async def looks(store: InMemoryStore, begin: datetime, count: int) -> list[list[str]]:
    """What each look of a replica asks for."""
    asked: list[list[str]] = []

    async def accept(task: Task) -> bool:
        async with store.transaction() as transaction:
            is_new = await transaction.tasks.add(task)
        if is_new:
            asked[-1].append(task.key)
        return is_new

    for number in range(count):
        asked.append([])
        await ask_for_nightly(accept, begin + number * LOOK)
    return asked


async def a_night(store: InMemoryStore, day: datetime) -> None:
    """All of its jobs are asked for when they are due."""
    for hour in NIGHTLY.values():
        await looks(store, day + timedelta(hours=hour), 3)


async def test_a_night_that_nobody_was_awake_in_is_made_up_for_one_job_after_the_other() -> None:
    store = InMemoryStore()
    await a_night(store, MIDNIGHT - timedelta(days=1))
    nine = MIDNIGHT + timedelta(hours=9)
    missed = [[f"{workflow}:2026-03-14"] for workflow in (INGEST, RECALIBRATE, RETAIN)]
    assert await looks(store, nine, 5) == [*missed, [], []]


async def test_replicas_that_start_together_and_again_make_up_for_it_once() -> None:
    store = InMemoryStore()
    nine = MIDNIGHT + timedelta(hours=9)
    asked = [key for _ in range(3) for look in await looks(store, nine, 4) for key in look]
    assert len(asked) == len(set(asked)) == len(NIGHTLY)


async def test_a_job_that_ran_when_it_was_due_is_not_run_again_before_it_is_due_again() -> None:
    store = InMemoryStore()
    await looks(store, MIDNIGHT, 3)  # whatever the day before left
    await a_night(store, MIDNIGHT)
    until_next = (timedelta(hours=26) - timedelta(hours=4, minutes=15)) // LOOK
    assert not any(await looks(store, MIDNIGHT + timedelta(hours=4, minutes=15), until_next))
    assert await looks(store, MIDNIGHT + timedelta(hours=26), 1) == [[f"{INGEST}:2026-03-15"]]


async def test_several_missed_nights_are_made_up_for_once() -> None:
    store = InMemoryStore()
    await a_night(store, MIDNIGHT)
    asked = await looks(store, MIDNIGHT + timedelta(days=9, hours=1), 6)
    assert [key for look in asked for key in look] == [f"{workflow}:2026-03-22" for workflow in NIGHTLY]


class Minutes:
    """A machine whose clock goes on by a minute, or jumps, whenever `pass_by` is awaited."""

    def __init__(self) -> None:
        self.clock = FakeClock(MIDNIGHT + timedelta(hours=12))
        self.keys: set[str] = set()
        self.asked: list[str] = []
        self._awake = asyncio.Event()
        self.loop = asyncio.create_task(
            keep_schedules(
                self._accept,
                self.clock,
                is_anything_held=self._something,
                is_anything_open=self._something,
                sleep=self._sleep,
            )
        )

    async def pass_by(self, *minutes: float) -> None:
        for each in minutes:
            await asyncio.sleep(0.001)  # until the loop sleeps
            self.clock.advance(60 * each)
            self._awake.set()
        await asyncio.sleep(0.001)

    async def _sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 60
        self._awake.clear()
        await self._awake.wait()

    async def _accept(self, task: Task) -> bool:
        is_new = task.key not in self.keys
        self.keys.add(task.key)
        self.asked += [task.workflow] if is_new else []
        return is_new

    async def _something(self) -> bool:
        if self.clock.now() == MIDNIGHT + timedelta(hours=13):
            raise StoreUnavailable("down")
        return True


@pytest.fixture
async def minutes() -> AsyncIterator[Minutes]:
    machine = Minutes()
    yield machine
    machine.loop.cancel()


async def test_a_process_that_starts_is_left_alone_before_it_catches_up(minutes: Minutes) -> None:
    await minutes.pass_by(1, 1)
    assert minutes.asked == [WATCH, WATCH]
    await minutes.pass_by(1)
    assert minutes.asked[3:] == [END_QUIET_HOURS, INGEST]


@pytest.mark.parametrize("jump", [-60, -9, 60, 20, -1 / 60], ids=lambda jump: f"{jump:.2f} minutes")
async def test_a_clock_that_jumps_delays_no_look(minutes: Minutes, jump: float) -> None:
    await minutes.pass_by(*[1] * 10)
    minutes.asked.clear()
    await minutes.pass_by(jump, *[1] * 10)
    assert 10 <= minutes.asked.count(WATCH) <= 11
    assert 2 <= minutes.asked.count(END_QUIET_HOURS) <= 3


async def test_a_database_that_does_not_answer_is_asked_again_after_a_minute(minutes: Minutes) -> None:
    await minutes.pass_by(*[1] * 59)
    minutes.asked.clear()
    await minutes.pass_by(1)
    assert minutes.asked == []
    await minutes.pass_by(1)
    assert minutes.asked == [WATCH, END_QUIET_HOURS]


async def test_two_replicas_whose_clocks_are_set_back_together_look_once_a_minute() -> None:
    clock = FakeClock()
    replicas = [Ticks(clock), Ticks(clock)]
    names = [[ticks.name() for ticks in replicas]]
    for minutes in (1, 1, 1, -2, 1, 2):
        clock.advance(60.0 * minutes)
        names.append([ticks.name() for ticks in replicas])
    assert all(ours == theirs for ours, theirs in names)
    assert len({ours for ours, _ in names}) == len(names), "each is another minute"
    assert names[-1] == ["2026-03-14T09:34"] * 2, "what is new again has its plain name"
