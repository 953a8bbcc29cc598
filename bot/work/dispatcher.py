"""Tasks become workflows, and end when their workflows have.

A task's key is its workflow's id, and a workflow id runs once however often it is started. A task belongs to the replica
that claimed it until its workflow has ended: what the engine forgot, or a dead replica left, is started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from prometheus_client import Counter

from core.model.errors import StoreUnavailable
from core.ports import Store, Task

POLLING_INTERVAL = 1.0  # seconds between looks at the task table when nobody rings
BATCH = 100  # tasks claimed at once
MAX_UNDER_WAY = 500  # workflows at once: most of them wait, as for a chat that is down; the rest wait in the table
DRAINING = 5.0  # seconds that workflows have to end when the process is told to

FAILED = Counter("plumbline_workflows_failed_total", "Workflows that ended with an error", ["workflow"])

log = structlog.get_logger()


class Dispatcher:
    """Starts the workflow of every task, oldest first, a bounded number at a time."""

    def __init__(self, store: Store, owner: str, run: Callable[[Task], Awaitable[Awaitable[object]]]) -> None:
        """`run` starts the workflow of a task durably and returns an awaitable that ends when the workflow does."""
        self._store = store
        self._owner = owner
        self._run = run
        self._bell = asyncio.Event()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._ended: set[str] = set()  # and not yet known to the store
        self._unsure = False  # whether something may be claimed that is not under way

    def ring(self) -> None:
        """There may be a new task."""
        self._bell.set()

    async def serve(self) -> None:
        """Dispatch until cancelled."""
        while True:
            self._bell.clear()
            limit = min(BATCH, MAX_UNDER_WAY - len(self._under_way))
            tasks = await self._claimed(limit)
            for task in tasks:
                await self._start(task)
            if len(tasks) < limit or not limit or self._unsure:
                await self._wait()

    async def drain(self) -> None:
        """Wait for the workflows under way; those that do not end are resumed by another process, or the next."""
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=DRAINING)
        await self._claimed(0)

    async def _claimed(self, limit: int) -> list[Task]:
        """Tell the store what has ended, and take on up to `limit` new tasks."""
        ended = frozenset(self._ended)
        try:
            async with self._store.transaction() as transaction:
                if ended:
                    await transaction.tasks.end(ended)
                if self._unsure:
                    await transaction.tasks.release([self._owner], self._under_way.keys())
                tasks = await transaction.tasks.claim(self._owner, limit) if limit else []
        except StoreUnavailable as error:
            self._unsure = True  # it may have been committed all the same
            log.warning("tasks wait", reason=str(error))
            return []
        except Exception:  # a mistake of ours: nothing would be dispatched any more, and nobody would know
            self._unsure = True
            log.exception("tasks cannot be claimed")
            return []
        self._ended -= ended
        self._unsure = False
        return tasks

    async def _start(self, task: Task) -> None:
        """Start one task. If that fails it is tried again, and keeps no other task waiting."""
        try:
            finished = await self._run(task)
        except Exception:
            log.exception("task cannot be started", workflow=task.workflow, key=task.key)
            self._unsure = True
            return
        self._under_way[task.key] = asyncio.create_task(self._watch(task, finished))

    async def _watch(self, task: Task, finished: Awaitable[object]) -> None:
        (result,) = await asyncio.gather(finished, return_exceptions=True)
        if isinstance(result, Exception):
            FAILED.labels(task.workflow).inc()
            log.error("workflow failed", workflow=task.workflow, key=task.key, error=str(result))
        if len(self._under_way) >= MAX_UNDER_WAY:
            self.ring()
        del self._under_way[task.key]
        if not isinstance(result, asyncio.CancelledError):
            self._ended.add(task.key)

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), POLLING_INTERVAL)
