"""The durable workflows: which behaviour runs after which, and with what retry.

Each step is checkpointed. A process that is killed anywhere resumes at the step it was in; every step can run twice
without doing anything twice.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog
from dbos import DBOS, DBOSConfig, DBOSConfiguredInstance, SetWorkflowID

from bot.tasks import FEEDBACK_EVENT, PLACE, QUESTION
from core.conversation import Place, Question
from core.errors import Unavailable, Withdrawn
from core.feedback import Feedback
from core.ports import Task

VERSION = "1"  # of the workflows below: one that is under way is only resumed by a process of the same version
FIRST_DELAY = 1.0  # seconds before a step that met an unavailable system is tried again
MAX_RUNNING = 16  # steps at once; more only compete for the same processor
LONGEST_DELAY = 30.0  # seconds; the delay doubles up to here

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Behaviours:
    """The handlers, with their ports already in hand."""

    answer: Callable[[Question], Awaitable[None]]
    apologise: Callable[[Question, str], Awaitable[None]]
    retract: Callable[[str, Place], Awaitable[None]]
    feedback: Callable[[Feedback], Awaitable[None]]
    present: Callable[[str], Awaitable[None]]
    triage: Callable[[str], Awaitable[None]]
    explain: Callable[[str], Awaitable[None]]
    triage_again: Callable[[str], Awaitable[None]]
    conclude: Callable[[str], Awaitable[None]]
    details: Callable[[str], Awaitable[None]]
    ingest: Callable[[], Awaitable[None]]
    fit_triage: Callable[[], Awaitable[None]]
    recalibrate: Callable[[], Awaitable[None]]


class OldSqlite(sqlite3.Connection):
    """A connection that knows the sub-second clock, which the engine asks for and SQLite has since 3.42."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.create_function("unixepoch", -1, _unix_time)


def _unix_time(*modifiers: str) -> float:
    return time.time() if "subsec" in modifiers or "subsecond" in modifiers else int(time.time())


def configure(database_url: str) -> None:
    """Set the workflow engine up. After `DBOS.launch()` it resumes what an earlier process left unfinished."""
    config: DBOSConfig = {
        "name": "plumbline",
        "system_database_url": database_url,
        "application_version": VERSION,
        "log_level": "ERROR",
    }
    if database_url.startswith("sqlite") and sqlite3.sqlite_version_info < (3, 42):
        config["db_engine_kwargs"] = {"connect_args": {"factory": OldSqlite}}
    DBOS(config=config)


@DBOS.dbos_class()
class Workflows(DBOSConfiguredInstance):
    """One instance per process, made before the engine is launched, so that it can resume what it finds."""

    def __init__(self, behaviours: Behaviours, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__("plumbline")
        self._behaviours = behaviours
        self._loop = loop
        self._places = asyncio.Semaphore(MAX_RUNNING)

    async def start(self, task: Task) -> Awaitable[object]:
        """Start a task's workflow. When this returns it will run to its end, even if the process does not."""
        workflow = getattr(self, task.workflow)
        with SetWorkflowID(task.key):
            handle = await DBOS.start_workflow_async(workflow, task.subject, dict(task.payload))
        return handle.get_result()

    @DBOS.workflow()
    async def answer_question(self, subject: str, payload: dict[str, Any]) -> None:
        question = QUESTION.validate_python(payload)
        try:
            await self._step("answer", question)
        except Withdrawn:
            log.info("question was deleted", reference=subject)
        except Exception:
            log.exception("question failed", reference=subject)
            with suppress(Withdrawn):
                await self._step("apologise", question, subject)

    @DBOS.workflow()
    async def retract_question(self, question_id: str, payload: dict[str, Any]) -> None:
        await self._step("retract", question_id, PLACE.validate_python(payload))

    @DBOS.workflow()
    async def record_feedback(self, _subject: str, payload: dict[str, Any]) -> None:
        await self._step("feedback", FEEDBACK_EVENT.validate_python(payload))

    @DBOS.workflow()
    async def investigate_incident(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """The raw alert at once, then the owner, then the cause: the same message each time, with more in it."""
        await self._step("present", incident_id)
        for investigation in ("triage", "explain"):
            try:
                await self._step(investigation, incident_id)
            except Exception:
                # What one investigation found must be shown even if the other one fails.
                log.exception("investigation failed", incident=incident_id, step=investigation)
            await self._step("present", incident_id)
        await self._step("conclude", incident_id)
        await self._step("present", incident_id)
        await self._step("details", incident_id)

    @DBOS.workflow()
    async def triage_again(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Somebody turned the incident away: the teams that are left negotiate."""
        await self._step("triage_again", incident_id)
        await self._step("present", incident_id)

    @DBOS.workflow()
    async def present_incident(self, incident_id: str, _payload: dict[str, Any]) -> None:
        await self._step("present", incident_id)

    @DBOS.workflow()
    async def ingest_knowledge(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._step("ingest")
        await self._step("fit_triage")

    @DBOS.workflow()
    async def recalibrate(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._step("recalibrate")

    async def _step(self, name: str, *arguments: Any) -> None:
        """Run a behaviour as a checkpointed step, again and again while an outside system is unavailable."""
        delay = FIRST_DELAY
        while True:
            try:
                return await DBOS.run_step_async({"name": name}, self._run, name, arguments)
            except Unavailable as error:
                log.warning("step waits", step=name, reason=str(error))
                await DBOS.sleep_async(error.retry_after or delay)
                delay = min(2 * delay, LONGEST_DELAY)

    async def _run(self, name: str, arguments: tuple[Any, ...]) -> None:
        """On the loop that the ports belong to: the engine resumes workflows on a loop of its own."""

        async def run() -> None:
            async with self._places:
                await getattr(self._behaviours, name)(*arguments)

        if asyncio.get_running_loop() is self._loop:
            await run()
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._loop))
