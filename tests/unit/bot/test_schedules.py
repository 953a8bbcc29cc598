"""Nightly jobs run once each night, also those that were missed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.schedules import INGEST, NIGHTLY, PATIENCE, RECALIBRATE, RETAIN, ask_for_nightly, build_schedules
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


async def test_a_process_that_starts_is_left_alone_before_it_catches_up() -> None:
    async def accept(_: Task) -> bool:
        raise AssertionError("nothing is asked for while it starts")

    async def nothing() -> bool:
        return False

    clock = FakeClock(datetime.now(UTC))
    schedules = build_schedules(accept, clock, is_anything_held=nothing, is_anything_open=nothing)
    job = schedules.get_job("nightly")
    assert job is not None
    first = job.trigger.get_next_fire_time(None, clock.now())
    assert PATIENCE <= first - clock.now() <= PATIENCE + LOOK
