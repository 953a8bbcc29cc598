"""Starts a workflow for each task, and ends the task when the workflow has ended.

A task's key is its workflow's id, and a workflow with a given id runs once, however often it is started. A task belongs
to the replica that claimed it until its workflow ends, so lost workflows and those of a dead replica are started again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from prometheus_client import Counter as Metric

from core.model.errors import StoreUnavailable
from core.ports import Store, Task

POLLING_INTERVAL = 1.0  # seconds between checks of the task table without notification
BATCH = 100  # tasks claimed at once
MAX_UNDER_WAY = 500  # concurrent workflows, most of which wait, for example for a chat; further tasks wait in the table
MAX_OF_ONE = 50  # of these, those that one person caused, give or take a batch
DRAINING = 5.0  # seconds for workflows to end at shutdown

FAILED = Metric("plumbline_workflows_failed_total", "Workflows that ended with an error", ["workflow"])

log = structlog.get_logger()


class Dispatcher:
    """Starts the workflow of every task, alerts first, with a bounded number in progress, in all and by person."""

    def __init__(self, store: Store, owner: str, run: Callable[[Task], Awaitable[Awaitable[object]]]) -> None:
        """Create the dispatcher. `run` durably starts a task's workflow, and returns an awaitable of its end."""
        self._store = store
        self._owner = owner
        self._run = run
        self._notified = asyncio.Event()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._people = Counter[str]()  # whose workflows are under way
        self._ended: set[str] = set()  # not yet reported to the store
        self._unsure = False  # whether claimed tasks may lack a running workflow

    def notify(self) -> None:
        """Signal that there may be a new task."""
        self._notified.set()

    async def serve(self) -> None:
        """Dispatch until cancelled."""
        while True:
            self._notified.clear()
            limit = min(BATCH, MAX_UNDER_WAY - len(self._under_way))
            tasks = await self._claimed(limit)
            for task in tasks:
                await self._start(task)
            if len(tasks) < limit or not limit or self._unsure:
                await self._wait()

    async def drain(self) -> None:
        """Wait for the running workflows. Those that do not end are resumed by another process or the next start."""
        if self._under_way:
            _, left = await asyncio.wait(self._under_way.values(), timeout=DRAINING)
            for each in left:
                each.cancel()
        await self._claimed(0)

    async def _claimed(self, limit: int) -> list[Task]:
        """Report ended tasks to the store, and claim up to `limit` new ones."""
        ended = frozenset(self._ended)
        try:
            async with self._store.transaction() as transaction:
                if ended:
                    await transaction.tasks.end(ended)
                if self._unsure:
                    await transaction.tasks.release([self._owner], self._under_way.keys())
                busy = [person for person, count in self._people.items() if count >= MAX_OF_ONE]
                tasks = await transaction.tasks.claim(self._owner, limit, busy) if limit else []
        except StoreUnavailable as error:
            self._unsure = True  # the transaction may have been committed
            log.warning("tasks wait", reason=str(error))
            return []
        except Exception:  # a bug must not stop the dispatching silently
            self._unsure = True
            log.exception("tasks cannot be claimed")
            return []
        self._ended -= ended
        self._unsure = False
        return tasks

    async def _start(self, task: Task) -> None:
        """Start one task. After a failure, it is retried later without delaying other tasks."""
        try:
            finished = await self._run(task)
        except Exception:
            log.exception("task cannot be started", workflow=task.workflow, key=task.key)
            self._unsure = True
            return
        self._people[task.person] += bool(task.person)
        self._under_way[task.key] = asyncio.create_task(self._watch(task, finished))

    async def _watch(self, task: Task, finished: Awaitable[object]) -> None:
        (result,) = await asyncio.gather(finished, return_exceptions=True)
        if isinstance(result, Exception):
            FAILED.labels(task.workflow).inc()
            log.error("workflow failed", workflow=task.workflow, key=task.key, error=str(result))
        if len(self._under_way) >= MAX_UNDER_WAY or self._people[task.person] >= MAX_OF_ONE:
            self.notify()
        self._people[task.person] -= bool(task.person)
        self._people += Counter()  # forgets those with nothing under way
        del self._under_way[task.key]
        if not isinstance(result, asyncio.CancelledError):
            self._ended.add(task.key)

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(
                POLLING_INTERVAL
            ):  # wait_for loses a cancellation that comes with a notification
                await self._notified.wait()
