"""Every recurring job. A tick only records a task whose key holds the tick, so that many replicas run it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

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


def build_schedules(
    accept: Callable[[Task], Awaitable[bool]],
    clock: Clock,
    *,
    is_anything_held: Callable[[], Awaitable[bool]],
    is_anything_open: Callable[[], Awaitable[bool]],
) -> AsyncIOScheduler:
    """A scheduler that is not started yet. `is_anything_held` by the quiet hours of a channel, or an incident `open`.

    A machine that was asleep, or a clock that jumped, is as good as a process that was not there.
    """
    # However late a look is, it is not skipped: many that were missed are one.
    scheduler = AsyncIOScheduler(timezone="UTC", job_defaults={"coalesce": True, "misfire_grace_time": None})

    async def look_for_nightly() -> None:
        await ask_for_nightly(accept, clock.now())

    async def look_after_incidents() -> None:
        if await is_anything_open():
            await accept(Task(f"{WATCH}:{clock.now():%Y-%m-%dT%H:%M}", WATCH, WATCH, {}))

    async def look_for_mornings() -> None:
        if await is_anything_held():
            await accept(Task(f"{END_QUIET_HOURS}:{clock.now():%Y-%m-%dT%H:%M}", END_QUIET_HOURS, END_QUIET_HOURS, {}))

    every_minute = CronTrigger(minute="*", timezone="UTC")
    mornings = CronTrigger(minute=MORNINGS, timezone="UTC")
    looks = CronTrigger(minute=LOOKS, timezone="UTC", start_date=clock.now() + PATIENCE)
    for name, job, trigger in (
        ("nightly", look_for_nightly, looks),
        (WATCH, look_after_incidents, every_minute),
        (END_QUIET_HOURS, look_for_mornings, mornings),
    ):
        scheduler.add_job(job, trigger, id=name)  # pyright: ignore[reportUnknownMemberType]
    return scheduler
