"""The `triage` and `rca` commands, in an incident's thread or with pasted alert text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from core.incidents.folding import open_from
from core.incidents.readable import readable
from core.incidents.thread_notes import service_in
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import PUBLIC, Audience, Question
from core.model.errors import Unavailable
from core.model.incident import Incident, Stage
from core.model.messages import IncidentDetails, IncidentMessage, Notice
from core.ports import Store
from core.rca.observations import QUESTION, investigation_intent
from handlers.common.ports import Chats, Ports
from handlers.common.stored_incident import incident_of_thread
from handlers.incidents.explain_incident import LOOKS_CLOSER, Show
from handlers.incidents.investigate_incident import investigate_and_save
from handlers.incidents.investigate_with_model import Progress
from handlers.incidents.open_incident import present_task

MAX_TITLE = 150  # characters of a pasted text's first line

FOR_THE_WORKSPACE = (
    "Logs, metrics and past incidents are for members of the workspace, and people from outside can read this channel. "
    "Ask me in a members-only channel or in a direct message."
)
NO_INCIDENT = "No incident belongs to this thread. Paste the alert or a description after the command."


Investigate = Callable[[Incident, Audience, Progress, Show], Awaitable[Incident]]


async def investigate_on_demand(question: Question, ports: Ports, investigate: Investigate, stage: Stage) -> None:
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
        else await _in_thread(question, ports.store)
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


async def _in_thread(question: Question, store: Store) -> Incident | None:
    async with store.transaction() as transaction:
        return await incident_of_thread(question.place, transaction)


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
