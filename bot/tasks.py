"""Accepted events become tasks, and tasks become workflows: nothing that was acknowledged is ever lost.

An event is written to the task table and acknowledged; the workflow engine comes after that, because enqueuing there
can take seconds under load. A task's key is its workflow's id, and a workflow id runs once however often it is
started, so that a crash between starting and remembering costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog
from pydantic import TypeAdapter

from core.conversation import Place, Question
from core.errors import StoreUnavailable
from core.feedback import Feedback
from core.ports import Store, Task

ANSWER = "answer_question"
FEEDBACK = "record_feedback"
RETRACTION = "retract_question"

POLLING_INTERVAL = 1.0  # seconds between looks at the task table when nobody rings
BATCH = 100  # tasks read at once
MAX_UNDER_WAY = 500  # workflows at once: most of them wait, as for a chat that is down; the rest wait in the table

QUESTION = TypeAdapter(Question)
FEEDBACK_EVENT = TypeAdapter(Feedback)
PLACE = TypeAdapter(Place)

log = structlog.get_logger()


class TaskInbox:
    """Implements `core.ports.Inbox`: writes what arrived as a task, and rings for the dispatcher."""

    def __init__(self, store: Store, ring: Callable[[], None]) -> None:
        self._store = store
        self._ring = ring

    async def ask(self, question: Question) -> None:
        payload = QUESTION.dump_python(question, mode="json")
        await self._accept(Task(question.id, ANSWER, question.id, payload))

    async def press(self, feedback: Feedback) -> None:
        payload = FEEDBACK_EVENT.dump_python(feedback, mode="json")
        await self._accept(Task(feedback.id, FEEDBACK, feedback.subject, payload))

    async def retract(self, question_id: str, place: Place) -> None:
        payload = PLACE.dump_python(place, mode="json")
        await self._accept(Task(f"retract:{question_id}", RETRACTION, question_id, payload))

    async def _accept(self, task: Task) -> None:
        async with self._store.transaction() as transaction:
            await transaction.tasks.add(task)
        self._ring()


class Dispatcher:
    """Starts the workflow of every task, oldest first, a bounded number at a time."""

    def __init__(self, store: Store, run: Callable[[Task], Awaitable[Awaitable[object]]]) -> None:
        """`run` starts the workflow of a task durably and returns an awaitable that ends when the workflow does."""
        self._store = store
        self._run = run
        self._bell = asyncio.Event()
        self._places = asyncio.Semaphore(MAX_UNDER_WAY)
        self._running: set[asyncio.Task[None]] = set()

    def ring(self) -> None:
        """There may be a new task."""
        self._bell.set()

    async def serve(self) -> None:
        """Dispatch until cancelled."""
        while True:
            self._bell.clear()
            started = False
            for task in await self._claimed():
                await self._places.acquire()
                started |= await self._start(task)
            if not started:
                await self._wait()

    async def drain(self) -> None:
        """Wait for the workflows under way; those that do not end are resumed by the next process."""
        if self._running:
            await asyncio.wait(self._running, timeout=5.0)

    async def _claimed(self) -> list[Task]:
        try:
            async with self._store.transaction() as transaction:
                return await transaction.tasks.claim(BATCH)
        except StoreUnavailable as error:
            log.warning("tasks wait", reason=str(error))
            return []

    async def _start(self, task: Task) -> bool:
        """Start one task; False if that failed. It is then tried again, and keeps no other task waiting."""
        try:
            finished = await self._run(task)
        except Exception:
            log.exception("task cannot be started", workflow=task.workflow, key=task.key)
            self._places.release()
            return False
        running = asyncio.create_task(self._watch(task, finished))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await self._mark_started(task)

    async def _mark_started(self, task: Task) -> bool:
        try:
            async with self._store.transaction() as transaction:
                await transaction.tasks.mark_started(task.key)
        except StoreUnavailable as error:
            log.warning("task is started again", workflow=task.workflow, key=task.key, reason=str(error))
            return False
        return True

    async def _watch(self, task: Task, finished: Awaitable[object]) -> None:
        (result,) = await asyncio.gather(finished, return_exceptions=True)
        self._places.release()
        if isinstance(result, Exception):
            log.error("workflow failed", workflow=task.workflow, key=task.key, error=str(result))

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), POLLING_INTERVAL)
