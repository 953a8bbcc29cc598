"""Recurring jobs. APScheduler's triggers say when; a task whose key contains the time runs once among replicas."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from adapters.clock import Cron
from bot.config.workspace import Workspace
from core.ports import Clock, Task

INGEST = "ingest_knowledge"
RECALIBRATE = "recalibrate"
RETAIN = "apply_retention"
END_QUIET_HOURS = "end_quiet_hours"
WATCH = "watch_incidents"
HANDOVER = "post_handover"
DIGEST = "post_digest"

LATE = timedelta(hours=12)  # after which a missed post is of no use any more
LONGEST = timedelta(days=31)  # that a post looks back
START_DELAY = 2  # minutes after start before missed jobs are made up for
MINUTE = "%Y-%m-%dT%H:%M"

log = structlog.get_logger()


@dataclass(frozen=True)
class Job:
    """A recurring job. `cron` says when it is due; a missed run is made up for while it is younger than `grace`.

    `subject` is the channel of a post, empty for other jobs.
    """

    workflow: str
    cron: Cron
    grace: timedelta
    subject: str = ""

    def latest(self, now: datetime) -> Task | None:
        """Return the latest due run; None if there is none within `grace`.

        Its key names the local time without its offset, so an hour that the clocks repeat counts once.
        """
        due = self.cron.latest(now, self.grace)
        if due is None:
            return None
        key = ":".join(filter(None, (self.workflow, self.subject, f"{due:{MINUTE}}")))
        if not self.subject:
            return Task(key, self.workflow, self.workflow, {})
        since = self.cron.latest(due.astimezone(UTC) - timedelta(microseconds=1), LONGEST) or due - LONGEST
        return Task(key, self.workflow, self.subject, {"intent": key, "since": since.astimezone(UTC).isoformat()})


def recurring_jobs(workspace: Workspace) -> tuple[Job, ...]:
    """Return the jobs of a workspace, in the order in which missed ones are made up for."""
    section = workspace.schedules
    # Keys of older runs may be deleted, so that these would count as missed.
    grace = timedelta(days=workspace.retention.events)
    crons = {INGEST: section.ingestion, RECALIBRATE: section.recalibration, RETAIN: section.retention}
    posts = [*((HANDOVER, each) for each in section.handovers), *((DIGEST, each) for each in section.digests)]
    return (
        *(Job(workflow, Cron(cron, section.timezone), grace) for workflow, cron in crons.items()),
        *(
            Job(workflow, Cron(post.cron, post.timezone or section.timezone), min(LATE, grace), post.channel)
            for workflow, post in posts
        ),
    )


async def ask_for_due(jobs: Sequence[Job], accept: Callable[[Task], Awaitable[bool]], now: datetime) -> None:
    """Request the first job whose latest run was never requested, whether due now or missed.

    `accept` returns whether a task is new. At most one job is requested per check, so that missed jobs do not begin
    together.
    """
    for job in jobs:
        task = job.latest(now)
        if task is not None and await accept(task):
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
    jobs: Sequence[Job],
    accept: Callable[[Task], Awaitable[bool]],
    clock: Clock,
    *,
    is_anything_held: Callable[[], Awaitable[bool]],
    is_anything_open: Callable[[], Awaitable[bool]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Check every minute what is due, until cancelled.

    `is_anything_held` tells whether quiet hours hold an incident, `is_anything_open` whether an incident is open. The
    loop sleeps for a minute at most, whatever the clock says, so a clock that is set ahead or back delays no check, and a
    missed check is made up for.
    """
    ticks = Ticks(clock)
    requested: set[str] = set()  # keys of this process, which need not be looked up again

    async def accept_once(task: Task) -> bool:
        is_new = task.key not in requested and await accept(task)
        requested.add(task.key)
        return is_new

    for minutes in itertools.count():  # since the start
        await sleep(60 - clock.now().timestamp() % 60)
        try:
            tick = ticks.name()
            if await is_anything_open():
                await accept(Task(f"{WATCH}:{tick}", WATCH, WATCH, {}))
            if await is_anything_held():
                await accept(Task(f"{END_QUIET_HOURS}:{tick}", END_QUIET_HOURS, END_QUIET_HOURS, {}))
            if minutes >= START_DELAY:
                await ask_for_due(jobs, accept_once, clock.now())
        except Exception:  # tried again in a minute
            log.exception("schedules cannot be kept")
