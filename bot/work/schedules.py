"""Recurring jobs. Each tick records a task whose key contains the tick, so that many replicas run it once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

from core.ports import Clock, Task

INGEST = "ingest_knowledge"
RECALIBRATE = "recalibrate"
RETAIN = "apply_retention"
END_QUIET_HOURS = "end_quiet_hours"
WATCH = "watch_incidents"

LOOK = 300.0  # seconds between looks for the end of quiet hours, and for due or missed nightly jobs
START_DELAY = 2  # minutes after start before the first of these looks
MINUTE = "%Y-%m-%dT%H:%M"

NIGHTLY = {INGEST: 2, RECALIBRATE: 3, RETAIN: 4}  # hour (UTC) at which each is due, in this order

log = structlog.get_logger()


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


async def keep_schedules(
    accept: Callable[[Task], Awaitable[bool]],
    clock: Clock,
    *,
    is_anything_held: Callable[[], Awaitable[bool]],
    is_anything_open: Callable[[], Awaitable[bool]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Check every minute which jobs are due, until cancelled.

    `is_anything_held` tells whether quiet hours hold an incident, `is_anything_open` whether an incident is open. The
    loop sleeps for a minute at most, whatever the clock says, so a clock that is set ahead or back delays no check, and a
    missed check is made up for.
    """
    ticks = Ticks(clock)
    last_look: float | None = None
    for minutes in itertools.count():  # since the start
        await sleep(60 - clock.now().timestamp() % 60)
        try:
            if await is_anything_open():
                await accept(Task(f"{WATCH}:{ticks.name()}", WATCH, WATCH, {}))
            look = clock.now().timestamp() // LOOK
            if look == last_look or minutes < START_DELAY:
                continue
            if await is_anything_held():
                await accept(Task(f"{END_QUIET_HOURS}:{ticks.name()}", END_QUIET_HOURS, END_QUIET_HOURS, {}))
            await ask_for_nightly(accept, clock.now())
            last_look = look
        except Exception:  # tried again in a minute
            log.exception("schedules cannot be kept")
