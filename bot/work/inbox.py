"""Durable acceptance of chat events: each is recorded once as a task before it is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from bot.observability.telemetry import EVENTS
from bot.work.batch_writer import BatchWriter
from core.incidents.command import CommandName, parse_command
from core.incidents.thread_notes import bears_on_cause
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import Place, Question
from core.model.feedback import Feedback, Reaction
from core.model.incident import IncidentState
from core.ports import Store, Task
from handlers.common.press import pressed
from handlers.common.stored_incident import incident_of_thread
from handlers.questions.run_command import recheck_task

ANSWER = "answer_question"
RETRACTION = "retract_question"
REACTION = "record_reaction"

QUESTION = TypeAdapter(Question)
REACTION_EVENT = TypeAdapter(Reaction)
PLACE = TypeAdapter(Place)


class TaskInbox:
    """Implements `core.ports.Inbox`: records each event as a task, and notifies the dispatcher."""

    def __init__(
        self,
        store: Store,
        notify: Callable[[], None],
        on_question: Callable[[Question], None] = lambda _: None,
        redact: Redact = without_redaction,
    ) -> None:
        """Create the inbox. `on_question` is called for every new question."""
        self._store = store
        self._redact = redact
        self._notify = notify
        self._on_question = on_question
        self._writer = BatchWriter(self._write)

    async def ask(self, question: Question) -> None:
        command = parse_command(question.text).name
        if command in (CommandName.TRIAGE, CommandName.RCA):  # pasted text of alerts and logs
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
        payload = PLACE.dump_python(place, mode="json")
        await self._accept(Task(f"retract:{question_id}", RETRACTION, question_id, payload))

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
