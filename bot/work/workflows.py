"""The durable workflows: the order of behaviours, and their retries.

Each step of a workflow with several is checkpointed. A killed process resumes at the interrupted step; every step can
run twice without repeating its effects.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from dbos import DBOS, DBOSConfiguredInstance, SetWorkflowID
from sqlalchemy.exc import DBAPIError

from bot.observability.telemetry import STEPS, timed
from bot.observability.tracing import KEY, span, traced
from bot.work import engine
from bot.work.tasks import FEEDBACK_EVENT, PLACE, QUESTION, REACTION_EVENT
from core.model.conversation import Place, Question
from core.model.errors import ChatBusy, MessageNotFound, PlumblineError, Unavailable, Undeliverable, Withdrawn
from core.model.feedback import Feedback, Reaction
from core.model.incident import ThreadNote
from core.ports import Task
from handlers.questions.answer_in_incident import note_of

FIRST_DELAY = 1.0  # seconds before the first retry of a step whose system is unavailable
MAX_RUNNING = 16  # concurrent steps per kind; more would only compete for the processor
STOPPING = 5.0  # seconds for interrupted steps to end, for example a post that has begun
LONGEST_DELAY = 30.0  # seconds; the limit of the doubling delay

pause = asyncio.sleep  # for workflows without steps: the engine records no sleep, and a takeover does not wait for it

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Behaviours:
    """The handlers with their ports."""

    answer: Callable[[Question], Awaitable[None]]
    apologise: Callable[[Question, str], Awaitable[None]]
    retract: Callable[[str, Place], Awaitable[None]]
    feedback: Callable[[Feedback], Awaitable[None]]
    react: Callable[[Reaction], Awaitable[None]]
    present: Callable[[str], Awaitable[None]]
    triage: Callable[[str], Awaitable[None]]
    explain: Callable[[str], Awaitable[None]]
    triage_again: Callable[[str], Awaitable[None]]
    recheck: Callable[[str, ThreadNote], Awaitable[None]]
    conclude: Callable[[str], Awaitable[None]]
    details: Callable[[str], Awaitable[None]]
    end_quiet_hours: Callable[[], Awaitable[None]]
    watch_incidents: Callable[[], Awaitable[None]]
    redeliver: Callable[[str], Awaitable[None]]
    ingest: Callable[[], Awaitable[None]]
    fit_triage: Callable[[], Awaitable[None]]
    recalibrate: Callable[[], Awaitable[None]]
    retain: Callable[[], Awaitable[None]]


@DBOS.dbos_class()
class Workflows(DBOSConfiguredInstance):
    """The workflows.

    There is one instance per process, created before the engine starts, so that it can resume them.
    """

    def __init__(self, behaviours: Behaviours, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__("plumbline")
        self._behaviours = behaviours
        self._loop = loop
        # Per kind, so that steps that wait minutes for a language model do not block others.
        self._semaphores = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(MAX_RUNNING))
        self._running: dict[str, asyncio.Task[Any] | None] = {}  # by id, with its task if that is one of `loop`
        self._is_stopped = False

    def running(self) -> frozenset[str]:
        """Return the ids of the workflows in a step in this process."""
        return frozenset(self._running)

    async def stop(self) -> None:
        """Interrupt all steps and begin no more, to be called before the engine and what steps use are closed.

        The next process resumes them. A step that went on would fail, and tell people so, or use what nobody closes.
        """
        self._is_stopped = True
        interrupted = [task for task in self._running.values() if task is not None]
        for task in interrupted:
            task.cancel()
        if interrupted:
            await asyncio.wait(interrupted, timeout=STOPPING)

    async def start(self, task: Task) -> Awaitable[object]:
        """Start a task's workflow. Once this returns, it will run to its end, even if the process dies."""
        workflow = getattr(self, task.workflow)
        with SetWorkflowID(task.key):
            payload = {**task.payload, KEY: task.correlation}
            handle = await DBOS.start_workflow_async(workflow, task.subject, payload)
        return engine.outcome(task.key, handle)

    @DBOS.workflow()
    @traced
    async def answer_question(self, subject: str, payload: dict[str, Any]) -> None:
        question = QUESTION.validate_python(payload)
        try:
            await self._do("answer", question)
        except Withdrawn:
            log.info("question was deleted or changed", reference=subject)
        except Exception:
            log.exception("question failed", reference=subject)
            with suppress(Withdrawn):
                await self._do("apologise", question, subject)

    @DBOS.workflow()
    @traced
    async def retract_question(self, question_id: str, payload: dict[str, Any]) -> None:
        await self._do("retract", question_id, PLACE.validate_python(payload))

    @DBOS.workflow()
    @traced
    async def record_feedback(self, _subject: str, payload: dict[str, Any]) -> None:
        await self._do("feedback", FEEDBACK_EVENT.validate_python(payload))

    @DBOS.workflow()
    @traced
    async def record_reaction(self, _subject: str, payload: dict[str, Any]) -> None:
        await self._do("react", REACTION_EVENT.validate_python(payload))

    @DBOS.workflow()
    @traced
    async def investigate_incident(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Show the alert at once, then add the owner and the cause to the same message."""
        await self._step("present", incident_id)
        for investigation in ("triage", "explain"):
            try:
                await self._step(investigation, incident_id)
            except Exception:
                # The findings of one investigation are shown even if the other one fails.
                log.exception("investigation failed", incident=incident_id, step=investigation)
            await self._step("present", incident_id)
        await self._step("conclude", incident_id)
        await self._step("present", incident_id)
        await self._step("details", incident_id)

    @DBOS.workflow()
    @traced
    async def triage_again(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Let the remaining teams negotiate after one rejected the incident."""
        await self._step("triage_again", incident_id)
        await self._step("present", incident_id)

    @DBOS.workflow()
    @traced
    async def recheck_incident(self, incident_id: str, payload: dict[str, Any]) -> None:
        """Investigate again after a remark about the cause, and update the message."""
        await self._step("recheck", incident_id, note_of(payload))
        await self._step("present", incident_id)

    @DBOS.workflow()
    @traced
    async def present_incident(self, incident_id: str, _payload: dict[str, Any]) -> None:
        await self._do("present", incident_id)

    @DBOS.workflow()
    @traced
    async def watch_incidents(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("watch_incidents")

    @DBOS.workflow()
    @traced
    async def redeliver(self, intent: str, _payload: dict[str, Any]) -> None:
        """Retry a dead letter at an operator's request."""
        await self._do("redeliver", intent)

    @DBOS.workflow()
    @traced
    async def end_quiet_hours(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("end_quiet_hours")

    @DBOS.workflow()
    @traced
    async def present_held(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Show an incident after quiet hours, or again after the chat refused it."""
        await self._step("present", incident_id)
        await self._step("details", incident_id)

    @DBOS.workflow()
    @traced
    async def ingest_knowledge(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._step("ingest")
        await self._step("fit_triage")

    @DBOS.workflow()
    @traced
    async def recalibrate(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("recalibrate")

    @DBOS.workflow()
    async def apply_retention(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("retain")

    async def _step(self, name: str, *arguments: Any) -> None:
        """Run a behaviour as a checkpointed step."""
        with self._in_step():
            step = partial(self._run, name, arguments)
            await _persist(name, lambda: DBOS.run_step_async({"name": name}, step), DBOS.sleep_async)

    async def _do(self, name: str, *arguments: Any) -> None:
        """Run the only behaviour of a workflow without a step checkpoint, which halves the engine's work."""
        with self._in_step():
            await _persist(name, partial(self._run, name, arguments), pause)

    @contextmanager
    def _in_step(self) -> Generator[None]:
        if self._is_stopped:
            raise engine.Interrupted
        workflow_id = DBOS.workflow_id or ""
        self._running[workflow_id] = asyncio.current_task() if asyncio.get_running_loop() is self._loop else None
        try:
            with engine.interruptions():
                yield
        finally:
            self._running.pop(workflow_id, None)

    async def _run(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Run a behaviour on the event loop of the ports. The engine resumes workflows on another loop."""

        async def run() -> None:
            async with self._semaphores[name]:
                try:
                    with span(name), timed(STEPS, name):
                        await getattr(self._behaviours, name)(*arguments)
                except DBAPIError as error:  # a bug, because outages have their own type
                    raise PlumblineError(f"The database refused step {name}: {error}.") from error

        if asyncio.get_running_loop() is self._loop:
            await run()
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._loop))


async def _persist(
    name: str, attempt: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Attempt a step repeatedly while an external system is unavailable.

    If the message or thread that it belongs to was deleted, there is nothing left to do.
    """
    delay = FIRST_DELAY
    while True:
        try:
            return await attempt()
        except MessageNotFound as error:
            log.info("nothing to say any more", step=name, reason=str(error))
            return None
        except Undeliverable as error:
            log.warning("message is a dead letter", step=name, reason=str(error))
            return None
        except ChatBusy as error:
            await sleep(error.retry_after or delay)
        except Unavailable as error:
            log.warning("step waits", step=name, reason=str(error))
            await sleep(error.retry_after or delay)
            delay = min(2 * delay, LONGEST_DELAY)
