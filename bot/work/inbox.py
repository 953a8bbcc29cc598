"""Durable acceptance of events, each recorded once as a task before it is acknowledged, and a workflow for each task.

Concurrent arrivals are written in one transaction, and share one disk flush (group commit). Measured at 50 events a second
for 10 s, one run after the other on two busy cores (`python -m tests.benchmarks load --seconds 10`, and the processor time
of the bot): an event takes 21 ms of processor time, an acknowledgement 564 ms at p99, and a post appears in the chat after
14 s in the median; with a transaction for each event, which share only the flush, 24 ms, 6,878 ms and 21 s.

The queues of the workflow engine could replace the table of tasks and the dispatcher: they take an event within the
transaction that stores it. They find new work by polling, so that they cost more and begin later. Measured in the same way,
500 events with three writes each, in two pairs: 8 and 9 ms of processor time an event against 11 and 13, 1.6 and 2.8 s from an
event to its work at p95 against 3.5 and 4.2 s, and 10 ms of processor time a second at rest against 31 and 45, with 10 and 20
polls a second.

A task's key is its workflow's id, and a workflow with a given id runs once, however often it is started. A task belongs
to the replica that claimed it until its workflow ends, so lost workflows and those of a dead replica are started again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Generic, TypeVar

import structlog
from prometheus_client import Counter as Metric
from pydantic import TypeAdapter

from bot.telemetry import EVENTS
from core.incidents.incident_questions import parse_command
from core.incidents.thread_notes import bears_on_cause
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.alert import Posted
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import Place, Question
from core.model.errors import Conflict, StoreUnavailable, Unavailable
from core.model.incident import IncidentState
from core.model.message_view import Feedback, Reaction
from core.ports import Store, Task
from handlers.common.stored_incident import incident_of_thread, pressed
from handlers.incidents.offer_adoption import OFFER
from handlers.questions.run_command import recheck_task

ANSWER = "answer_question"
RETRACTION = "retract_question"
REACTION = "record_reaction"

QUESTION = TypeAdapter(Question)
REACTION_EVENT = TypeAdapter(Reaction)
PLACE = TypeAdapter(Place)


async def _ignore(_: Posted) -> None:
    """Ignore what other bots post."""


class TaskInbox:
    """Implements `core.ports.Inbox`: records each event as a task, and notifies the dispatcher."""

    def __init__(
        self,
        store: Store,
        notify: Callable[[], None],
        on_question: Callable[[Question], None] = lambda _: None,
        redact: Redact = without_redaction,
        take: Callable[[Posted], Awaitable[None]] = _ignore,
    ) -> None:
        """Create the inbox. `on_question` is called for every new question; `take` takes what other bots post."""
        self._take = take
        self._store = store
        self._redact = redact
        self._notify = notify
        self._on_question = on_question
        self._writer = BatchWriter(self._write)

    async def ask(self, question: Question) -> None:
        command = parse_command(question.text).name
        question = replace(question, text=await asyncio.to_thread(redacted, question.text, self._redact))
        payload = QUESTION.dump_python(question, mode="json")
        entry = audit_entry(
            f"asked:{question.key}",
            question.asked_at,
            Act.ASKED,
            question.asker,
            question.id,
            place=question.place,
            detail=command,
        )
        if await self._accept(Task(question.key, ANSWER, question.id, payload), entry):
            self._on_question(question)

    async def overhear(self, remark: Question, name: Callable[[], Awaitable[str]]) -> None:
        if not bears_on_cause(remark.text):
            return
        async with self._store.transaction() as transaction:
            incident = await incident_of_thread(remark.place, transaction)
        if incident is None or incident.state is not IncidentState.OPEN:
            return
        speaker = replace(remark.asker, name=await name())
        noted = audit_entry(f"noted:{remark.key}", remark.asked_at, Act.NOTED, speaker, incident.id, place=remark.place)
        await self._accept(recheck_task(incident.id, replace(remark, asker=speaker), self._redact), noted)

    async def post(self, posted: Posted) -> None:
        await self._take(posted)
        self._notify()

    async def join(self, place: Place) -> None:
        payload = {"place": PLACE.dump_python(place, mode="json")}
        await self._accept(Task(f"{OFFER}:{place.platform}:{place.channel}", OFFER, place.channel, payload))

    async def press(self, feedback: Feedback) -> None:
        await self._accept(*pressed(feedback))

    async def react(self, reaction: Reaction) -> None:
        payload = REACTION_EVENT.dump_python(reaction, mode="json")
        await self._accept(Task(reaction.id, REACTION, reaction.message.message_id, payload))

    async def retract(self, question_id: str, place: Place, *, edited: bool = False) -> None:
        if edited:
            async with self._store.transaction() as transaction:
                if not await transaction.tasks.is_known(question_id):
                    return
        await self._accept(
            Task(f"retract:{question_id}", RETRACTION, question_id, PLACE.dump_python(place, mode="json"))
        )

    async def _accept(self, task: Task, entry: AuditEntry | None = None) -> bool:
        """Record the task. Returns whether it is new."""
        is_new = await self._writer.take((task, entry))
        EVENTS.labels(task.workflow, "accepted" if is_new else "deduplicated").inc()
        self._notify()
        return is_new

    async def _write(self, accepted: Sequence[tuple[Task, AuditEntry | None]]) -> list[bool]:
        """Write the tasks. Returns for each whether it is new."""
        async with self._store.transaction() as transaction:
            are_new = [await transaction.tasks.add(task) for task, _ in accepted]
            for _, entry in accepted:
                if entry is not None:
                    await transaction.audit.add(entry)
        return are_new


WRITTEN_BATCH = 100  # arrivals written at once

Arrival = TypeVar("Arrival")
Stored = TypeVar("Stored")


class BatchWriter(Generic[Arrival, Stored]):
    """Writes arrivals in order. Those that arrive during a write form the next batch."""

    def __init__(self, write: Callable[[Sequence[Arrival]], Awaitable[list[Stored]]]) -> None:
        """Create the writer. `write` stores all arrivals or none, and returns the result of each."""
        self._write = write
        self._waiting: list[tuple[Arrival, asyncio.Future[Stored]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def take(self, arrival: Arrival) -> Stored:
        """Store an arrival and return the result, or raise the error of the write."""
        outcome: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append((arrival, outcome))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._work())
        return await outcome

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:WRITTEN_BATCH], self._waiting[WRITTEN_BATCH:]
            (stored,) = await asyncio.gather(self._write([each for each, _ in batch]), return_exceptions=True)
            if isinstance(stored, list):
                outcomes: list[Stored | BaseException] = [*stored]
            elif not isinstance(stored, Conflict) and (len(batch) == 1 or isinstance(stored, Unavailable)):
                outcomes = [stored] * len(batch)
            else:  # one arrival spoils the batch, or another writer interfered: retry one by one
                outcomes = [await self._alone(arrival) for arrival, _ in batch]
            for (_, waiting), outcome in zip(batch, outcomes, strict=True):
                _settle(waiting, outcome)

    async def _alone(self, arrival: Arrival) -> Stored | BaseException:
        (stored,) = await asyncio.gather(self._write([arrival]), return_exceptions=True)
        return stored[0] if isinstance(stored, list) else stored


def _settle(waiting: asyncio.Future[Stored], outcome: Stored | BaseException) -> None:
    """Deliver the outcome, unless the request was cancelled."""
    if waiting.done():
        return
    if isinstance(outcome, BaseException):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)


POLLING_INTERVAL = 1.0  # seconds between checks of the task table without notification
CLAIMED_BATCH = 100  # tasks claimed at once
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
            limit = min(CLAIMED_BATCH, MAX_UNDER_WAY - len(self._under_way))
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
