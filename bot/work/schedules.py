"""Recurring jobs. Each tick records a task whose key contains the tick, so that many replicas run it once."""

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

MORNINGS = "*/5"  # minutes at which the end of quiet hours is checked
LOOKS = "*/5"  # minutes at which due or missed nightly jobs are checked
START_DELAY = timedelta(minutes=2)  # delay after start before missed jobs are caught up
MINUTE = "%Y-%m-%dT%H:%M"
GLANCE = 10.0  # seconds between checks whether the clock was set back

NIGHTLY = {INGEST: 2, RECALIBRATE: 3, RETAIN: 4}  # hour (UTC) at which each is due, in this order


def nightly_task(workflow: str, now: datetime) -> Task:
    """Return the latest due run of a nightly job."""
    due = now.replace(hour=NIGHTLY[workflow], minute=0, second=0, microsecond=0)
    if due > now:
        due -= timedelta(days=1)
    return Task(f"{workflow}:{due:%Y-%m-%d}", workflow, workflow, {})


async def ask_for_nightly(accept: Callable[[Task], Awaitable[bool]], now: datetime) -> None:
    """Request the first nightly job whose latest run was never requested, whether due now or missed.

    `accept` returns whether a task is new. At most one job is requested per check, so that missed jobs do not run
    together.
    """
    for workflow in NIGHTLY:
        if await accept(nightly_task(workflow, now)):
            return


class Ticks:
    """Names minutes for task keys. A minute that repeats because the clock was set back gets another name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = datetime.min.replace(tzinfo=UTC)
        self._again_until = self._last  # the latest minute named before the clock was set back

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
    """Return a scheduler that is not started yet.

    `is_anything_held` tells whether quiet hours hold an incident, `is_anything_open` whether an incident is open. A
    suspended machine or a clock set ahead is handled like a stopped process. The caller must also run `follow_clock`.
    """
    # Late checks are not skipped; several missed ones run once.
    scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"coalesce": True, "misfire_grace_time": None})

    ticks = Ticks(clock)

    async def check_nightly_runs() -> None:
        await ask_for_nightly(accept, clock.now())

    async def check_incidents() -> None:
        if await is_anything_open():
            await accept(Task(f"{WATCH}:{ticks.name()}", WATCH, WATCH, {}))

    async def check_quiet_hours() -> None:
        if await is_anything_held():
            await accept(Task(f"{END_QUIET_HOURS}:{ticks.name()}", END_QUIET_HOURS, END_QUIET_HOURS, {}))

    def plan(name: str, job: Callable[[], Awaitable[None]], minutes: str, **options: Any) -> None:
        trigger = CronTrigger(minute=minutes, timezone="UTC")
        scheduler.add_job(job, trigger, id=name, **options)  # pyright: ignore[reportUnknownMemberType]

    plan("nightly", check_nightly_runs, LOOKS, next_run_time=clock.now() + START_DELAY)
    plan(WATCH, check_incidents, "*")
    plan(END_QUIET_HOURS, check_quiet_hours, MORNINGS)
    return scheduler


async def follow_clock(
    schedules: AsyncIOScheduler, clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Reschedule all jobs when the clock was set back; otherwise none runs until it reaches its earlier time again."""
    before = clock.now()
    while True:
        await sleep(GLANCE)
        now = clock.now()
        if now < before:
            for job in cast("list[Any]", schedules.get_jobs()):  # pyright: ignore[reportUnknownMemberType]
                job.reschedule(job.trigger)
        before = now
