"""Every recurring job. A tick only records a task whose key holds the tick, so that many replicas run it once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs]
from apscheduler.triggers.cron import CronTrigger  # pyright: ignore[reportMissingTypeStubs]

from core.ports import Clock, Task

INGEST = "ingest_knowledge"
RECALIBRATE = "recalibrate"

NIGHTLY = {INGEST: CronTrigger(hour=2, minute=0, timezone="UTC"), RECALIBRATE: CronTrigger(hour=3, timezone="UTC")}


def build_schedules(accept: Callable[[Task], Awaitable[None]], clock: Clock) -> AsyncIOScheduler:
    """A scheduler that is not started yet."""
    scheduler = AsyncIOScheduler(timezone="UTC")

    async def tick(workflow: str) -> None:
        await accept(Task(f"{workflow}:{clock.now():%Y-%m-%d}", workflow, workflow, {}))

    for workflow, trigger in NIGHTLY.items():
        scheduler.add_job(  # pyright: ignore[reportUnknownMemberType]
            tick, trigger, args=[workflow], id=workflow, coalesce=True, misfire_grace_time=3600
        )
    return scheduler
