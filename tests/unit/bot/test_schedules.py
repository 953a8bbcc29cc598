"""Nightly jobs run once each night, also those that were missed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.work.schedules import (
    END_QUIET_HOURS,
    INGEST,
    NIGHTLY,
    RECALIBRATE,
    RETAIN,
    START_DELAY,
    WATCH,
    Ticks,
    ask_for_nightly,
    build_schedules,
    follow_clock,
)
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


async def nothing() -> bool:
    return False


async def something() -> bool:
    return True


async def test_a_process_that_starts_is_left_alone_before_it_catches_up() -> None:
    async def accept(_: Task) -> bool:
        raise AssertionError("nothing is asked for while it starts")

    clock = FakeClock(datetime.now(UTC))
    schedules = build_schedules(accept, clock, is_anything_held=nothing, is_anything_open=nothing)
    job = schedules.get_job("nightly")
    assert job is not None
    assert START_DELAY <= job.next_run_time - clock.now() <= START_DELAY + LOOK


class Minutes:
    """A machine's clock for the scheduler too, which goes on by a minute whenever `minute` is awaited."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock(MIDNIGHT + timedelta(hours=12))
        now = SimpleNamespace(now=lambda _zone: self.clock.now())
        monkeypatch.setattr("apscheduler.schedulers.base.datetime", now)
        self.asked: list[str] = []
        self.keys: set[str] = set()
        self.glanced = asyncio.Event()

    async def accept(self, task: Task) -> bool:
        is_new = task.key not in self.keys
        self.keys.add(task.key)
        self.asked += [task.workflow] if is_new else []
        return is_new

    async def glance(self, seconds: float) -> None:
        """Stands in for the sleep between two glances: it is over when `minute` says so."""
        assert seconds <= 60
        self.glanced.clear()
        await self.glanced.wait()

    async def minute(self, schedules: AsyncIOScheduler) -> None:
        """A minute later, with everything that is done then."""
        self.clock.advance(60)
        self.glanced.set()
        await asyncio.sleep(0)
        schedules.wakeup()
        for _ in range(5):  # the job is due, starts, asks whether there is anything to do, and asks for it
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "jump", [timedelta(hours=-1), timedelta(minutes=-9), timedelta(hours=1), timedelta(seconds=-1)]
)
async def test_a_clock_that_jumps_delays_no_look(jump: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Minutes(monkeypatch)
    schedules = build_schedules(time.accept, time.clock, is_anything_held=something, is_anything_open=something)
    schedules.start()
    following = asyncio.create_task(follow_clock(schedules, time.clock, time.glance))
    for _ in range(10):
        await time.minute(schedules)
    time.asked.clear()
    time.clock.advance(jump.total_seconds())
    await time.minute(schedules)
    for _ in range(10):
        await time.minute(schedules)
    assert 10 <= time.asked.count(WATCH) <= 11
    assert 2 <= time.asked.count(END_QUIET_HOURS) <= 3
    following.cancel()
    schedules.shutdown(wait=False)
    await asyncio.sleep(0)


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
