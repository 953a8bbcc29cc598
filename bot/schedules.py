"""Every recurring job. A tick only records a task whose key holds the tick, so that many replicas run it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.cron import CronTrigger  # pyright: ignore[reportMissingTypeStubs]

from core.ports import Clock, Task

INGEST = "ingest_knowledge"
RECALIBRATE = "recalibrate"
RETAIN = "apply_retention"
END_QUIET_HOURS = "end_quiet_hours"
WATCH = "watch_incidents"

MORNINGS = "*/5"  # minutes at which quiet hours may have ended

NIGHTLY = {
    INGEST: CronTrigger(hour=2, timezone="UTC"),
    RECALIBRATE: CronTrigger(hour=3, timezone="UTC"),
    RETAIN: CronTrigger(hour=4, timezone="UTC"),
}


def build_schedules(
    accept: Callable[[Task], Awaitable[None]],
    clock: Clock,
    *,
    is_anything_held: Callable[[], Awaitable[bool]],
    is_anything_open: Callable[[], Awaitable[bool]],
) -> AsyncIOScheduler:
    """A scheduler that is not started yet. `is_anything_held` by the quiet hours of a channel, or an incident `open`."""
    scheduler = AsyncIOScheduler(timezone="UTC")

    async def tick(workflow: str) -> None:
        await accept(Task(f"{workflow}:{clock.now():%Y-%m-%d}", workflow, workflow, {}))

    for workflow, trigger in NIGHTLY.items():
        scheduler.add_job(  # pyright: ignore[reportUnknownMemberType]
            tick, trigger, args=[workflow], id=workflow, coalesce=True, misfire_grace_time=3600
        )

    async def look_after_incidents() -> None:
        if await is_anything_open():
            await accept(Task(f"{WATCH}:{clock.now():%Y-%m-%dT%H:%M}", WATCH, WATCH, {}))

    scheduler.add_job(  # pyright: ignore[reportUnknownMemberType]
        look_after_incidents, CronTrigger(minute="*", timezone="UTC"), id=WATCH, coalesce=True
    )

    async def look_for_mornings() -> None:
        if await is_anything_held():
            await accept(Task(f"{END_QUIET_HOURS}:{clock.now():%Y-%m-%dT%H:%M}", END_QUIET_HOURS, END_QUIET_HOURS, {}))

    scheduler.add_job(  # pyright: ignore[reportUnknownMemberType]
        look_for_mornings, CronTrigger(minute=MORNINGS, timezone="UTC"), id=END_QUIET_HOURS, coalesce=True
    )
    return scheduler
