"""Recurring jobs, and the deletion of data: the nightly retention policy, and what belongs to a person or a thread.

APScheduler's triggers say when; a task whose key contains the time runs once among replicas.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from dbos import DBOS
from rich.console import Console
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.clock import Cron, SystemClock
from adapters.store import forgetting
from adapters.store.database import truncate_log
from bot.commands.records import open_store
from bot.config.section import RetentionSection
from bot.config.settings import Settings
from bot.config.workspace import Workspace
from bot.work import engine as workflow_engine
from core.model.audit import PLUMBLINE, Act, audit_entry
from core.ports import Clock, Store, Task

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


async def apply_retention(policy: RetentionSection, engine: AsyncEngine, store: Store, clock: Clock) -> None:
    """Delete what exceeds the retention periods, and record the counts in the audit log. Raises StoreUnavailable."""
    now = clock.now()
    kept = {kind: days for kind, days in policy.model_dump().items() if days is not None}
    deleted = await forgetting.delete_before(engine, {kind: now - timedelta(days=days) for kind, days in kept.items()})
    deleted["workflows"] = await workflow_engine.forget_before(now - timedelta(days=policy.events))
    counts = ", ".join(f"{kind} {count}" for kind, count in deleted.items() if count) or "nothing"
    await _note(store, now, f"retained:{now:%Y-%m-%dT%H:%M}", "retention", counts)


async def run_forget(settings: Settings, person: str, thread: str, out: Console) -> None:
    """Delete the messages of a person or a thread, even while the bot runs.

    `person` may begin with the platform, as in the audit log.
    """
    async with open_store(settings) as store:
        forgotten = await forgetting.forget(
            store.engine,
            person=person.removeprefix("slack:").removeprefix("teams:").removeprefix("console:"),
            thread=thread,
            forget_workflows=lambda keys: asyncio.to_thread(forget_workflows, settings.workflow_database, keys),
        )
        now = SystemClock().now()  # the audit log does not say whose data was deleted
        key = f"forgotten:{now:%Y-%m-%dT%H:%M:%S.%f}"
        await _note(store, now, key, "forget", f"events {len(forgotten)}")
        for database in (settings.database, settings.workflow_database):
            await asyncio.to_thread(truncate_log, database)
    out.print(
        f"{len(forgotten)} events were deleted. Plumbline does not delete messages in the chat itself, in sources or "
        "in backups.",
        highlight=False,
    )


def forget_workflows(database_url: str, keys: list[str]) -> None:
    """Delete the engine's data of these workflows, even while the bot runs."""
    if not keys:
        return
    DBOS.migrate(database_url)  # a restored workspace may lack the tables
    with workflow_engine.client(database_url) as client:
        for start in range(0, len(keys), forgetting.BATCH):  # statements have a limited number of parameters
            client.delete_workflows(keys[start : start + forgetting.BATCH])


async def _note(store: Store, now: datetime, key: str, subject: str, detail: str) -> None:
    """Record in the audit log that data was deleted."""
    async with store.transaction() as transaction:
        await transaction.audit.add(audit_entry(key, now, Act.RETAINED, PLUMBLINE, subject, detail=detail))
