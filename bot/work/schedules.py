"""Every recurring job. A tick only records a task whose key holds the tick, so that many replicas run it once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.cron import CronTrigger  # pyright: ignore[reportMissingTypeStubs]

from core.ports import Clock, Task

INGEST = "ingest_knowledge"
RECALIBRATE = "recalibrate"
RETAIN = "apply_retention"
END_QUIET_HOURS = "end_quiet_hours"
WATCH = "watch_incidents"

MORNINGS = "*/5"  # minutes at which quiet hours may have ended
LOOKS = "*/5"  # minutes at which nightly jobs may be due, or may have been missed
PATIENCE = timedelta(minutes=2)  # that a process leaves to its start, before it catches up with what was missed
MINUTE = "%Y-%m-%dT%H:%M"
GLANCE = 10.0  # seconds between two glances at the clock, whether it was set back

NIGHTLY = {INGEST: 2, RECALIBRATE: 3, RETAIN: 4}  # hour of the day (UTC) from which each is due, in this order


def nightly_task(workflow: str, now: datetime) -> Task:
    """The run of a nightly job that was due last."""
    due = now.replace(hour=NIGHTLY[workflow], minute=0, second=0, microsecond=0)
    if due > now:
        due -= timedelta(days=1)
    return Task(f"{workflow}:{due:%Y-%m-%d}", workflow, workflow, {})


async def ask_for_nightly(accept: Callable[[Task], Awaitable[bool]], now: datetime) -> None:
    """Ask for the first nightly job whose last run nobody ever asked for, whether it is due now or was missed.

    `accept` says whether a task is new. One job a look: what was missed together does not run together.
    """
    for workflow in NIGHTLY:
        if await accept(nightly_task(workflow, now)):
            return


class Ticks:
    """Names each minute, for the key of a task. One that a clock shows again, since it was set back, is another one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = datetime.min.replace(tzinfo=UTC)
        self._again_until = self._last  # the latest minute that was named before the clock was set back

    def name(self) -> str:
        minute = self._clock.now().replace(second=0, microsecond=0)
        if minute < self._last:
            self._again_until = max(self._again_until, self._last)
        self._last = minute
        again = f":again-until-{self._again_until:{MINUTE}}" if minute <= self._again_until else ""
        return f"{minute:{MINUTE}}{again}"


def build_schedules(
    accept: Callable[[Task], Awaitable[bool]],
    clock: Clock,
    *,
    is_anything_held: Callable[[], Awaitable[bool]],
    is_anything_open: Callable[[], Awaitable[bool]],
) -> AsyncIOScheduler:
    """A scheduler that is not started yet. `is_anything_held` by the quiet hours of a channel, or an incident `open`.

    A machine that was asleep, or a clock that was set ahead, is as good as a process that was not there. Whoever starts
    the scheduler also lets `follow_clock` run.
    """
    # However late a look is, it is not skipped: many that were missed are one.
    scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"coalesce": True, "misfire_grace_time": None})

    ticks = Ticks(clock)

    async def look_for_nightly() -> None:
        await ask_for_nightly(accept, clock.now())

    async def look_after_incidents() -> None:
        if await is_anything_open():
            await accept(Task(f"{WATCH}:{ticks.name()}", WATCH, WATCH, {}))

    async def look_for_mornings() -> None:
        if await is_anything_held():
            await accept(Task(f"{END_QUIET_HOURS}:{ticks.name()}", END_QUIET_HOURS, END_QUIET_HOURS, {}))

    def plan(name: str, job: Callable[[], Awaitable[None]], minutes: str, **options: Any) -> None:
        trigger = CronTrigger(minute=minutes, timezone="UTC")
        scheduler.add_job(job, trigger, id=name, **options)  # pyright: ignore[reportUnknownMemberType]

    plan("nightly", look_for_nightly, LOOKS, next_run_time=clock.now() + PATIENCE)
    plan(WATCH, look_after_incidents, "*")
    plan(END_QUIET_HOURS, look_for_mornings, MORNINGS)
    return scheduler


async def follow_clock(
    schedules: AsyncIOScheduler, clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Plan all looks anew when the clock was set back: else none is made before it shows again what it showed."""
    before = clock.now()
    while True:
        await sleep(GLANCE)
        now = clock.now()
        if now < before:
            for job in cast("list[Any]", schedules.get_jobs()):  # pyright: ignore[reportUnknownMemberType]
                job.reschedule(job.trigger)
        before = now
