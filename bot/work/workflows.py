"""The durable workflows: which handlers a task calls, in which order, and how they are retried.

The investigations of a workflow are steps, each checkpointed under its name. A killed process resumes at the interrupted
one, and shows again what was shown; everything can run twice without repeating its effects.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import structlog
from dbos import DBOS, DBOSConfiguredInstance, SetWorkflowID
from sqlalchemy.exc import DBAPIError

from adapters.fitting import can_learn
from bot.telemetry import STEPS, timed
from bot.tracing import KEY, span, traced
from bot.wiring.application import Core, channel_places, current_teams, ingest, learn_owners, operators_place
from bot.work import engine
from bot.work.inbox import PLACE, QUESTION, REACTION_EVENT
from bot.work.schedules import apply_retention
from core.model.errors import ChatBusy, MessageNotFound, PlumblineError, Unavailable, Undeliverable, Withdrawn
from core.ports import Task
from handlers.common.ports import Ports
from handlers.common.stored_incident import FEEDBACK_EVENT
from handlers.feedback.post_digest import post_digest
from handlers.feedback.recalibrate import recalibrate, watch_calibration
from handlers.feedback.record_feedback import record_reaction, take_feedback
from handlers.incidents.adopt_alerts import link_posted
from handlers.incidents.arrange_incident import watch_incidents
from handlers.incidents.hold_incident import end_quiet_hours, present_storm, watch_storms
from handlers.incidents.investigate_incident import (
    Rechecks,
    conclude_investigation,
    find_cause,
    find_owner,
    triage_again,
)
from handlers.incidents.label_incident import label_noted_incidents, label_suggestions
from handlers.incidents.mute_alert import tell_ended_mutes
from handlers.incidents.offer_adoption import ask_about_posted, offer_adoption
from handlers.incidents.post_handover import post_handover
from handlers.incidents.present_incident import present_details, update_chats
from handlers.questions.closed_chats import redeliver_waiting
from handlers.questions.redeliver import redeliver
from handlers.questions.run_command import apologise, remark_of, retract_question, run_command

FIRST_DELAY = 1.0  # seconds before the first retry of a step whose system is unavailable
MAX_OF_ONE = 2  # concurrent questions of one person; more would take the processor from the others
MAX_RUNNING = 16  # concurrent steps per kind; more would only compete for the processor
STOPPING = 5.0  # seconds for interrupted steps to end, for example a post that has begun
LONGEST_DELAY = 30.0  # seconds; the limit of the doubling delay

pause = asyncio.sleep  # the engine records no sleep, and a takeover does not wait for it

log = structlog.get_logger()

Handler = Callable[..., Awaitable[object]]
Turn = Callable[[], AbstractAsyncContextManager[None]]


async def ingest_all(core: Core) -> None:
    """Read all sources, unless an ingestion that includes the latest changes already waits for its turn."""
    if not core.awaiting_index.locked():
        await ingest(core)


async def learn_from_outcomes(core: Core, ports: Ports) -> None:
    """Label the claims whose outcome is known now, fit the calibrators to all labels, and check those in use.

    A language model summarises the team documents.
    """
    await label_noted_incidents(ports)
    await label_suggestions(store=core.store)
    await core.history.grow(core.store)
    if can_learn():
        await recalibrate(
            store=core.store, clock=core.clock, by_thresholds=core.workspace.confidence.percentages == "thresholds"
        )
    await watch_calibration(ports, operators=operators_place(core))
    if ports.models.examined is not None:
        await ports.models.examined.compress(ports.ownership.documents, await current_teams(core.workspace))


@DBOS.dbos_class()
class Workflows(DBOSConfiguredInstance):
    """The workflows.

    There is one instance per process, created before the engine starts, so that it can resume them.
    """

    def __init__(self, core: Core, ports: Ports, loop: asyncio.AbstractEventLoop) -> None:
        """Create the workflows. The handlers are called with `ports`, on `loop`."""
        super().__init__("plumbline")
        self._core = core
        self._ports = ports
        self._loop = loop
        # Per kind, so that steps that wait minutes for a language model do not block others.
        self._semaphores = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(MAX_RUNNING))
        self._shares = WeakValueDictionary[str, asyncio.Semaphore]()  # by person
        self._rechecks = Rechecks()
        self._running: dict[str, asyncio.Task[Any] | None] = {}  # by id, with its task if that is one of `loop`
        self._is_stopped = False

    def running(self) -> frozenset[str]:
        """Return the ids of the workflows in a step in this process."""
        return frozenset(self._running)

    async def stop(self) -> None:
        """Interrupt all steps and start no more. Call it before the engine and the resources of steps are closed.

        The next process resumes the steps. A step that continued would fail and tell people so, or use closed resources.
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
            handle = await DBOS.start_workflow_async(workflow, task.subject, {**task.payload, KEY: task.correlation})
        return engine.outcome(task.key, handle)

    @DBOS.workflow()
    @traced
    async def answer_question(self, subject: str, payload: dict[str, Any]) -> None:
        question = QUESTION.validate_python(payload)
        try:
            await self._do(
                "answer", run_command, question, self._ports, turn=partial(self._turn_of, question.asker.key)
            )
        except Withdrawn:
            log.info("question was deleted or changed", reference=subject)
        except Exception:
            log.exception("question failed", reference=subject)
            with suppress(Withdrawn):
                await self._do("apologise", apologise, question, subject, self._ports)

    @DBOS.workflow()
    @traced
    async def retract_question(self, question_id: str, payload: dict[str, Any]) -> None:
        await self._do("retract", retract_question, question_id, PLACE.validate_python(payload), self._ports)

    @DBOS.workflow()
    @traced
    async def record_feedback(self, _subject: str, payload: dict[str, Any]) -> None:
        await self._do("feedback", take_feedback, FEEDBACK_EVENT.validate_python(payload), self._ports)

    @DBOS.workflow()
    @traced
    async def ask_about_posted(self, shape: str, payload: dict[str, Any]) -> None:
        await self._do(
            "ask_about_posted", ask_about_posted, shape, PLACE.validate_python(payload["place"]), self._ports
        )

    @DBOS.workflow()
    @traced
    async def link_posted(self, incident_id: str, payload: dict[str, Any]) -> None:
        await self._do("link_posted", link_posted, incident_id, PLACE.validate_python(payload["place"]), self._ports)

    @DBOS.workflow()
    @traced
    async def offer_adoption(self, channel: str, payload: dict[str, Any]) -> None:
        place = PLACE.validate_python(payload["place"])
        await self._do("offer_adoption", offer_adoption, channel, place, self._ports)

    @DBOS.workflow()
    @traced
    async def record_reaction(self, _subject: str, payload: dict[str, Any]) -> None:
        await self._do("react", record_reaction, REACTION_EVENT.validate_python(payload), self._ports)

    @DBOS.workflow()
    @traced
    async def investigate_incident(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Show the alert at once, then add the owner and the cause to the same message."""
        for name, investigate in (("triage", find_owner), ("explain", find_cause)):
            await self._do("present", update_chats, incident_id, self._ports)
            try:
                await self._step(name, investigate, incident_id, self._ports)
            except Exception:
                # The findings of one investigation are shown even if the other one fails.
                log.exception("investigation failed", incident=incident_id, step=name)
        await self._do("conclude", conclude_investigation, incident_id, self._ports.store)
        await self._do("present", update_chats, incident_id, self._ports)
        await self._do("details", present_details, incident_id, self._ports)

    @DBOS.workflow()
    @traced
    async def triage_again(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Let the remaining teams negotiate after one rejected the incident."""
        await self._step("triage_again", triage_again, incident_id, self._ports)
        await self._do("present", update_chats, incident_id, self._ports)

    @DBOS.workflow()
    @traced
    async def recheck_incident(self, incident_id: str, payload: dict[str, Any]) -> None:
        """Investigate again after a remark about the cause, and update the message."""
        await self._step(
            "recheck", self._rechecks.recheck, incident_id, remark_of(payload), self._ports, turn=nullcontext
        )
        await self._do("present", update_chats, incident_id, self._ports)

    @DBOS.workflow()
    @traced
    async def present_incident(self, incident_id: str, _payload: dict[str, Any]) -> None:
        # Not named as the step of a new incident, behind many of which it would wait in a storm.
        await self._do("update", partial(update_chats, is_step=False), incident_id, self._ports)

    @DBOS.workflow()
    @traced
    async def watch_incidents(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("watch_incidents", watch_incidents, self._ports)
        await self._do("watch_storms", watch_storms, self._ports)
        await self._do("redeliver_waiting", redeliver_waiting, self._ports)
        await self._do("tell_ended_mutes", tell_ended_mutes, self._ports)

    @DBOS.workflow()
    @traced
    async def present_storm(self, storm: str, payload: dict[str, Any]) -> None:
        await self._do("present_storm", present_storm, storm, PLACE.validate_python(payload), self._ports)

    @DBOS.workflow()
    @traced
    async def redeliver(self, intent: str, _payload: dict[str, Any]) -> None:
        """Retry a dead letter at an operator's request."""
        await self._do("redeliver", redeliver, intent, self._ports)

    @DBOS.workflow()
    @traced
    async def end_quiet_hours(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("end_quiet_hours", end_quiet_hours, self._ports)

    @DBOS.workflow()
    @traced
    async def present_held(self, incident_id: str, _payload: dict[str, Any]) -> None:
        """Show an incident after quiet hours, or again after the chat refused it."""
        await self._do("present", update_chats, incident_id, self._ports)
        await self._do("details", present_details, incident_id, self._ports)

    @DBOS.workflow()
    @traced
    async def ingest_knowledge(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._step("ingest", ingest_all, self._core)
        await self._step("fit_triage", learn_owners, self._core)

    @DBOS.workflow()
    @traced
    async def recalibrate(self, _subject: str, _payload: dict[str, Any]) -> None:
        await self._do("recalibrate", learn_from_outcomes, self._core, self._ports)

    @DBOS.workflow()
    @traced
    async def post_handover(self, channel: str, payload: dict[str, Any]) -> None:
        await self._do(
            "post_handover", self._post_everywhere, channel, payload, partial(post_handover, ports=self._ports)
        )

    @DBOS.workflow()
    @traced
    async def post_digest(self, channel: str, payload: dict[str, Any]) -> None:
        await self._do("post_digest", self._post_everywhere, channel, payload, partial(post_digest, ports=self._ports))

    async def _post_everywhere(self, channel: str, payload: dict[str, Any], post: Handler) -> None:
        """Post in each chat of a channel, then raise the most temporary error: a chat that is down delays no other."""
        since = datetime.fromisoformat(payload["since"])
        first, *others = channel_places(channel, self._core)
        intents = {payload["intent"]: first} | {f"{payload['intent']}@{place.platform}": place for place in others}
        posting = (post(intent, place, since) for intent, place in intents.items())
        results = await asyncio.gather(*posting, return_exceptions=True)
        if failures := [each for each in results if isinstance(each, BaseException)]:
            raise min(failures, key=lambda error: not isinstance(error, Unavailable))

    @DBOS.workflow()
    async def apply_retention(self, _subject: str, _payload: dict[str, Any]) -> None:
        core = self._core
        await self._do("retain", apply_retention, core.workspace.retention, core.engine, core.store, core.clock)

    async def _step(self, name: str, handler: Handler, *arguments: Any, turn: Turn | None = None) -> None:
        """Call a handler as a step that is checkpointed under `name`, when it is its turn.

        By default it waits behind the other steps of its name; with `nullcontext` it waits for its turn by itself.
        """
        with self._in_step():
            step = partial(self._run, name, handler, arguments, turn)
            await _persist(name, lambda: DBOS.run_step_async({"name": name}, step))

    async def _do(self, name: str, handler: Handler, *arguments: Any, turn: Turn | None = None) -> None:
        """Call a handler without a checkpoint: a resumed workflow calls it again.

        For what is shown, and for the only handler of a workflow. The engine writes nothing for it.
        """
        with self._in_step():
            await _persist(name, partial(self._run, name, handler, arguments, turn))

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

    @asynccontextmanager
    async def _turn_of(self, person: str) -> AsyncGenerator[None]:
        """Wait behind the other questions of the same person, if known, then behind those of everybody."""
        share = self._shares.setdefault(person, asyncio.Semaphore(MAX_OF_ONE)) if person else nullcontext()
        async with share, self._semaphores["answer"]:
            yield

    async def _run(self, name: str, handler: Handler, arguments: tuple[Any, ...], turn: Turn | None = None) -> None:
        """Call a handler on the event loop of its ports. The engine resumes workflows on another loop."""

        async def run() -> None:
            async with turn() if turn else self._semaphores[name]:
                try:
                    with span(name), timed(STEPS, name):
                        await handler(*arguments)
                except DBAPIError as error:  # a bug, because outages have their own type
                    raise PlumblineError(f"The database refused step {name}: {error}.") from error

        if asyncio.get_running_loop() is self._loop:
            await run()
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._loop))


async def _persist(name: str, attempt: Callable[[], Awaitable[None]]) -> None:
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
            await pause(error.retry_after or delay)
        except Unavailable as error:
            log.warning("step waits", step=name, reason=str(error))
            await pause(error.retry_after or delay)
            delay = min(2 * delay, LONGEST_DELAY)
