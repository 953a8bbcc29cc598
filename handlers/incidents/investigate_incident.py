"""The steps of an investigation: find the owner, find the cause, and save the findings onto the latest revision.

Remarks from the incident's thread start another one: those that arrive meanwhile share the next round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import structlog

from core.incidents.folding import open_from
from core.incidents.readable import readable
from core.incidents.thread_notes import service_in, with_note
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import PUBLIC, Audience, Question
from core.model.errors import ToolUnavailable, Unavailable
from core.model.findings import Findings, ThreadNote
from core.model.incident import Incident, Stage
from core.model.messages import IncidentDetails, IncidentMessage, Notice
from core.model_calls.choice import Use
from core.ports import AlertMonitor, AlertState, Store, Task, Transaction
from core.rca.observations import QUESTION, Observations, investigation_intent
from handlers.common.ports import Chats, Ports
from handlers.common.stored_incident import (
    change_incident,
    find_in_thread,
    read_incident,
    save_next,
    unless_stopped,
    update_incident,
)
from handlers.incidents.arrange_incident import is_investigated
from handlers.incidents.explain_incident import LOOKS_CLOSER, Show, explain_incident
from handlers.incidents.investigate_with_model import Progress
from handlers.incidents.observe_incident import observe_incident
from handlers.incidents.open_incident import present_task
from handlers.incidents.present_incident import present_meanwhile
from handlers.incidents.suggestions import find_runbook
from handlers.incidents.triage_incident import triage_incident

TRIAGE_AGAIN = "triage-again"
DEADLINE = 8.0  # seconds that one monitoring system may take

RESOLVED = "It was resolved before I finished investigating. This is what was known then."
GONE = "{monitor} reports that the alert is no longer firing, so I stopped investigating. This is what was known then."
STOPPED = "The language model was stopped. This is what was known then."

Investigate = Callable[[Incident, Audience, Ports], Awaitable[Incident]]

log = structlog.get_logger()


async def investigate_and_save(
    incident_id: str, investigate: Callable[[Incident], Awaitable[Incident]], *, store: Store
) -> None:
    """Run `investigate`, and save its findings: owner, explanation, suggestions and stage.

    Alerts that arrived in the meantime are kept, and so are reassignments and verdicts by people. The owner must
    reflect the cause: if another step found the cause meanwhile, `investigate` runs again, and if people reassigned the
    incident while this step found the cause, the teams negotiate again.
    """
    incident = await read_incident(incident_id, store)
    investigated = await investigate(incident)
    saved = await save_findings(investigated, incident, store=store)
    # Another step may have saved in the minutes that this one took.
    if investigated.findings.explanation == incident.findings.explanation != saved.findings.explanation:
        incident, investigated = saved, await investigate(saved)
        saved = await save_findings(investigated, incident, store=store)
    if investigated.findings.explanation != incident.findings.explanation and saved.hops != incident.hops:
        async with store.transaction() as transaction:
            await transaction.tasks.add(triage_again_task(saved, "explained"))


def triage_again_task(incident: Incident, why: str = "") -> Task:
    """Return the task that renegotiates the owner, unique for each hop and reason."""
    key = ":".join(filter(None, (TRIAGE_AGAIN, incident.id, str(len(incident.hops)), why)))
    return Task(key, "triage_again", incident.id, {})


async def save_findings(
    investigated: Incident,
    read: Incident,
    *,
    progress: str = "",
    stop_id: str = "",
    store: Store,
) -> Incident:
    """Save interim or final findings, and return the stored incident.

    `read` is the incident as this step read it; `progress` is the current activity, and `stop_id` stops it. Fields that
    this step did not change keep the values that concurrent steps stored.
    """
    new, old = investigated.findings, read.findings

    def merged(latest: Incident) -> Incident:
        stored = latest.findings
        # The stored owner was chosen with newer information: an explanation or a reassignment.
        is_superseded = new.explanation == old.explanation != stored.explanation or latest.hops != read.hops
        joint = latest.with_findings(
            owner=stored.owner if is_superseded else new.owner,
            explanation=new.explanation if new.explanation != old.explanation else stored.explanation,
            runbook=new.runbook or stored.runbook,
            cut_short=new.cut_short if new.cut_short != old.cut_short else stored.cut_short,
            asked=new.asked or stored.asked,
            basis=_joint_basis(new, stored),
        )
        stage = investigated.stage if latest.stage is read.stage else latest.stage
        return replace(joint, stage=stage, progress=progress, stop_id=stop_id)

    # Without a change of its own, it may still have to end the activity that another step saved.
    return await update_incident(read.id, merged, store, read if merged(read) != read else None)


def _joint_basis(new: Findings, stored: Findings) -> tuple[str, ...] | None:
    """Return the basis of new findings and of those kept. Unknown if that of the kept ones is."""
    if stored.basis is None:
        return None if stored.owner is not None or stored.explanation is not None else new.basis
    return tuple(sorted({*stored.basis, *(new.basis or ())}))


async def conclude_investigation(incident_id: str, store: Store) -> None:
    """Mark the investigation as done, unless there was none (see `is_investigated`)."""

    async def concluded(latest: Incident, transaction: Transaction) -> Incident:
        if latest.stage is Stage.DONE or not await is_investigated(latest, transaction):
            return latest
        return await save_next(replace(latest, stage=Stage.DONE), latest, transaction)

    await change_incident(incident_id, concluded, store)


async def find_owner(incident_id: str, ports: Ports) -> None:
    """Find the owner without the slow parts: the language model and the teams' monitoring."""
    await _investigate(incident_id, _triage_without_model, ports)


async def find_cause(incident_id: str, ports: Ports) -> None:
    """Find the cause, and show the current activity and interim findings in the incident's message."""
    await _investigate(incident_id, _explain_and_show, ports)


async def triage_again(incident_id: str, ports: Ports) -> None:
    """Find the owner at a person's request, and show the evidence-only result while the model works."""
    await _investigate(incident_id, _triage_and_show, ports, requested=True)


async def take_note(incident_id: str, remark: Question, ports: Ports) -> None:
    """Record a remark from an incident's thread, whose readers are those of the place.

    A remark that was only overheard comes without its audience.
    """
    said_to = remark.audience.disclosed_to or (await ports.chats.audience_at(remark.place)).disclosed_to
    note = ThreadNote(remark.asker.name_or_id, remark.text, remark.asked_at, tuple(sorted(said_to)))
    await update_incident(incident_id, lambda latest: with_note(latest, note), ports.store)


async def reinvestigate(incident_id: str, ports: Ports) -> None:
    """Investigate an incident again with the remarks from its thread."""
    await _investigate(incident_id, _explain_and_show, ports, requested=True)


async def _investigate(incident_id: str, investigate: Investigate, ports: Ports, *, requested: bool = False) -> None:
    """Run a step for the incident's audience. Skip silenced and merged incidents unless a person requested the step.

    The skipped work is done when the incident is shown on its own.
    """

    async def unless_put_off(incident: Incident) -> Incident:
        is_alone = incident.silenced is None and incident.part_of is None
        if not (requested or is_alone):
            async with ports.store.transaction() as transaction:
                if not await is_investigated(incident, transaction):
                    return incident
        return await investigate(incident, await ports.chats.audience_of(incident), ports)

    try:
        await investigate_and_save(incident_id, unless_put_off, store=ports.store)
    except Unavailable:  # the step is tried again, and a press of “Stop” still counts
        raise
    except Exception:
        await update_incident(incident_id, lambda latest: replace(latest, progress="", stop_id=""), ports.store)
        raise


async def triage(
    incident: Incident, audience: Audience, ports: Ports, show: Show | None = None, stop_id: str = ""
) -> Incident:
    """Find the owner by negotiation of the teams; a language model decides if they do not agree.

    `show` receives the evidence-only result before the model is asked. A press of “Stop” with the `stop_id` ends the
    model's work.
    """

    async def find(used: Ports, show: Show) -> Incident:
        if used.models.examined is not None and used.models.examined.skill(Use.OWNERS) is not None:
            await show(await _triage_without_model(incident, audience, used))
        return await _triage(incident, audience, used)

    def noted(investigated: Incident) -> Incident:
        owner = investigated.findings.owner
        return investigated.with_findings(owner=owner and replace(owner, note=f"{owner.note} {STOPPED}".strip()))

    return await _until_stopped(find, noted, show, stop_id, ports)


async def explain(
    incident: Incident,
    audience: Audience,
    ports: Ports,
    progress: Progress | None = None,
    show: Show | None = None,
    stop_id: str = "",
) -> Incident:
    """Find the cause, and revise the owner accordingly.

    `show` receives the interim results before the model analyses the cause, and before it proposes the owner. A press of
    “Stop” with the `stop_id` ends the model's work.
    """

    async def find(used: Ports, show: Show) -> Incident:
        async def show_owned(explained: Incident) -> None:
            await show(await _triage_without_model(explained, audience, used))

        history = await used.history_for(audience)
        explained = await explain_incident(incident, used, history=history, progress=progress, show=show_owned)
        if used.models.examined is not None and used.models.examined.skill(Use.OWNERS) is not None:
            await show_owned(explained)
        return await _triage(explained.with_findings(cut_short=""), audience, used)

    return await _until_stopped(
        find, lambda investigated: investigated.with_findings(cut_short=STOPPED), show, stop_id, ports
    )


async def _until_stopped(
    find: Callable[[Ports, Show], Coroutine[Any, Any, Incident]],
    noted: Callable[[Incident], Incident],
    show: Show | None,
    stop_id: str,
    ports: Ports,
) -> Incident:
    """Return the findings. Once somebody stops the model, return those that were shown last, `noted` as such.

    If none were shown, those without a model are returned.
    """
    latest: Incident | None = None

    async def keep(investigated: Incident) -> None:
        nonlocal latest
        latest = investigated
        if show is not None:
            await show(investigated)

    if ports.models.examined is None:
        return await find(ports, keep)
    metered = ports.models.examined.within(ports.models.limits)
    used = replace(ports, models=replace(ports.models, examined=metered, judge=ports.models.judge and metered.model))
    investigated = await unless_stopped(find(used, keep), stop_id, ports.store) or noted(
        latest or await find(ports.without_model, keep)
    )
    return investigated.with_findings(asked=metered.model.summary)


async def observe(incident: Incident, audience: Audience, ports: Ports) -> Observations:
    """Read the tools around an incident, with the history that the audience may read."""
    history = await ports.history_for(audience)
    return await observe_incident(incident, ports.readers, history=history, clock=ports.clock)


async def _triage_and_show(incident: Incident, audience: Audience, ports: Ports) -> Incident:
    return await triage(incident, audience, ports, partial(_show, read=incident, ports=ports), _stop_id(incident))


async def _explain_and_show(incident: Incident, audience: Audience, ports: Ports) -> Incident:
    async def progress(doing: str) -> None:
        await update_incident(incident.id, lambda latest: replace(latest, progress=doing), ports.store)
        await present_meanwhile(incident.id, ports)

    over = await reason_to_stop(incident, ports.readers.monitors)
    used = ports.without_model if over else ports
    show = partial(_show, read=incident, ports=ports)
    investigated = await explain(incident, audience, used, progress, show, _stop_id(incident))
    return investigated.with_findings(cut_short=over) if over and ports.models.examined is not None else investigated


def _stop_id(incident: Incident) -> str:
    """Return the id that stops the model's work on an incident as it was read: anew for each step, unless one resumes."""
    return incident.stop_id or f"{incident.id}:{incident.revision}"


async def _show(investigated: Incident, read: Incident, ports: Ports) -> None:
    """Save interim findings and update the message while the language model works."""
    interim = replace(investigated, stage=read.stage)
    await save_findings(interim, read, progress=LOOKS_CLOSER, stop_id=_stop_id(read), store=ports.store)
    await present_meanwhile(read.id, ports)


async def _triage_without_model(incident: Incident, audience: Audience, ports: Ports) -> Incident:
    return await _triage(incident, audience, ports.without_model, looks=False)


async def _triage(incident: Incident, audience: Audience, ports: Ports, *, looks: bool = True) -> Incident:
    """Return the incident after triage. `looks` lets the teams consult their own monitoring."""
    history = await ports.history_for(audience)
    observe = partial(observe_incident, readers=ports.readers, history=history, clock=ports.clock)
    incident = await triage_incident(
        incident,
        ports,
        history=history,
        observe=observe if looks else None,
    )
    incident = await find_runbook(incident, retriever=ports.knowledge.retriever, audience=audience)
    return incident.with_findings(basis=tuple(sorted(audience.basis)))


async def reason_to_stop(incident: Incident, monitors: Sequence[AlertMonitor]) -> str:
    """Return the reason why the incident needs no long analysis; empty if it still needs one.

    The alert is firing unless a monitoring system says that it is not, and none that knows it says anything else. If none
    can tell, the state from the last delivery counts, in which only a cure is a reason.
    """
    if incident.is_cured:
        return RESOLVED
    states = await asyncio.gather(*(_ask(monitor, incident) for monitor in monitors))
    silent = next((monitor.name for monitor, each in zip(monitors, states, strict=True) if each.fires is False), "")
    doubted = any(each.fires or each.reason for each in states)
    return GONE.format(monitor=silent) if silent and not doubted else ""


async def _ask(monitor: AlertMonitor, incident: Incident) -> AlertState:
    try:
        async with asyncio.timeout(DEADLINE):
            state = await monitor.firing(incident)
    except (ToolUnavailable, TimeoutError) as error:
        state = AlertState(None, str(error) or "no answer in time")
    log.info("alert_state", monitor=monitor.name, incident=incident.id, fires=state.fires, reason=state.reason)
    return state


MAX_ROUNDS = 2  # concurrent investigations because of remarks; new alerts and questions have the rest of the processor


@dataclass(slots=True, weakref_slot=True)
class _Remarks:
    """The remarks about an incident that wait, and the investigations that read them, one at a time."""

    noted: int = 0
    read: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Rechecks:
    """The investigations because of remarks in this process: one at a time for each incident and each person."""

    def __init__(self) -> None:
        self._remarks = WeakValueDictionary[str, _Remarks]()
        self._people = WeakValueDictionary[str, asyncio.Lock]()
        self._rounds = asyncio.Semaphore(MAX_ROUNDS)

    async def recheck(self, incident_id: str, remark: Question, ports: Ports) -> None:
        """Record a remark, and investigate, unless an investigation that began later has read it."""
        await take_note(incident_id, remark, ports)
        remarks = self._remarks.setdefault(incident_id, _Remarks())
        own = remarks.noted = remarks.noted + 1
        # The person first: who waits for a turn of their own holds up nobody else's remark about the incident.
        async with self._people.setdefault(remark.asker.id, asyncio.Lock()), remarks.turn:
            if remarks.read >= own:
                return
            async with self._rounds:
                noted = remarks.noted
                await reinvestigate(incident_id, ports)
                remarks.read = noted


MAX_TITLE = 150  # characters of a pasted text's first line

FOR_THE_WORKSPACE = (
    "Logs, metrics and past incidents are for members of the workspace, and people from outside can read this channel. "
    "Ask me in a members-only channel or in a direct message."
)
NO_INCIDENT = "No incident belongs to this thread. Paste the alert or a description after the command."


Analysis = Callable[[Incident, Audience, Progress, Show], Awaitable[Incident]]


async def investigate_on_demand(question: Question, ports: Ports, investigate: Analysis, stage: Stage) -> None:
    """Post the findings of `investigate`, with the details in the thread.

    A progress message is posted at once with this `stage` and edited at every step; interim results from `show` appear
    in it, with a button that stops the model. Reads nothing that the audience may not read. If outsiders read the
    channel, only an incident that was posted there is investigated.
    """
    intent = investigation_intent(question.id)
    if question.text and PUBLIC not in question.audience.readers:
        await ports.poster.post_once(intent, question.place, Notice(FOR_THE_WORKSPACE))
        return
    incident = (
        incident_from(question, ports.company.services, ports.redact)
        if question.text
        else await find_in_thread(question.place, ports.store)
    )
    if incident is None:
        await ports.poster.post_once(intent, question.place, Notice(NO_INCIDENT))
        return

    current, looks = replace(incident.with_findings(explanation=None), stop_id=""), 0

    async def seen(investigated: Incident) -> Incident:
        if question.text:
            return investigated
        return readable(investigated, question.audience, await ports.chats.channels_of([investigated]))

    async def report(doing: str) -> None:
        version = f"under way: {looks} {doing}"
        message = IncidentMessage(replace(await seen(current), stage=stage, progress=doing))
        with suppress(Unavailable):  # a failed progress update is not retried
            await ports.poster.post_or_edit(intent, question.place, message, version)

    async def show(investigated: Incident) -> None:
        nonlocal current, looks
        current, looks = replace(investigated, stop_id=question.key), looks + 1
        await report(LOOKS_CLOSER)

    await report("")
    if question.text:
        investigated = await investigate(incident, question.audience, report, show)
    else:
        readers = await _readers_of(incident, question.audience, ports.chats)
        await investigate_and_save(
            incident.id, lambda latest: investigate(latest, readers, report, show), store=ports.store
        )
        async with ports.store.transaction() as transaction:
            investigated = await transaction.incidents.get(incident.id) or incident
            if investigated.revision != incident.revision:
                await transaction.tasks.add(present_task(investigated))  # its own message shows the new findings too
    investigated = await seen(investigated)
    await ports.poster.post_or_edit(
        intent, question.place, IncidentMessage(replace(investigated, stage=Stage.DONE, stop_id="")), "done"
    )
    if investigated.findings.explanation is not None:
        await ports.poster.post_once(
            f"investigation-details:{question.id}", question.place, IncidentDetails(investigated)
        )


async def _readers_of(incident: Incident, audience: Audience, chats: Chats) -> Audience:
    """Return the asking audience, restricted to those who can read every place that shows the incident."""
    if not incident.placement.also_in:
        return audience
    return replace(audience, readers=audience.readers & (await chats.audience_of(incident)).readers)


def incident_from(question: Question, services: Iterable[str], redact: Redact = without_redaction) -> Incident:
    """Return pasted text, redacted, as an incident that starts now, for the service that it names first.

    The incident is not stored, and pages nobody.
    """
    text = redacted(question.text, redact)
    title = text.strip().splitlines()[0][:MAX_TITLE]
    alert = Alert(
        fingerprint=question.id,
        name=title,
        status=AlertStatus.FIRING,
        severity=Severity.WARNING,
        starts_at=question.asked_at,
        service=service_in(question.text, services),
        summary=title,
        description=text,
    )
    delivery = AlertDelivery(question.id, QUESTION, question.id, (alert,), question.asked_at)
    return open_from(delivery, question.id, question.place)
