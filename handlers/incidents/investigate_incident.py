"""Run one investigation step on an incident, and save its findings onto the latest revision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.model.incident import Incident, Stage
from core.ports import Store, Task
from handlers.feedback.accept_suggestion import is_rejected
from handlers.incidents.stored_incident import stored_incident
from handlers.incidents.update_incident import update_incident

TRIAGE_AGAIN = "triage-again"


async def investigate_incident(
    incident_id: str, investigate: Callable[[Incident], Awaitable[Incident]], *, store: Store
) -> None:
    """Run `investigate`, and save its findings: owner, explanation, suggestions and stage.

    Alerts that arrived in the meantime are kept, and so are reassignments and verdicts by people. The owner must
    reflect the cause: if another step found the cause meanwhile, `investigate` runs again, and if people reassigned the
    incident while this step found the cause, the teams negotiate again.
    """
    incident = await _stored(incident_id, store)
    found = await investigate(incident)
    latest = await _stored(incident_id, store)
    if found.explanation == incident.explanation != latest.explanation:
        incident, found = latest, await investigate(latest)
    saved = await save_findings(found, incident, store=store)
    if found.explanation != incident.explanation and saved.hops != incident.hops:
        async with store.transaction() as transaction:
            await transaction.tasks.add(triage_again_task(saved, "explained"))


async def _stored(incident_id: str, store: Store) -> Incident:
    async with store.transaction() as transaction:
        return await stored_incident(incident_id, transaction)


def triage_again_task(incident: Incident, why: str = "") -> Task:
    """Return the task that renegotiates the owner, unique for each hop and reason."""
    key = ":".join(filter(None, (TRIAGE_AGAIN, incident.id, str(len(incident.hops)), why)))
    return Task(key, "triage_again", incident.id, {})


async def save_findings(found: Incident, read: Incident, *, progress: str = "", store: Store) -> Incident:
    """Save interim or final findings, and return the stored incident.

    `read` is the incident as this step read it; `progress` is the current activity. Fields that this step did not
    change keep the values that concurrent steps stored.
    """
    severity, duplicate = found.suggested_severity, found.suggested_duplicate
    # A person may have rejected the suggestion while this step ran.
    severity = None if severity is not None and await is_rejected(severity.prediction_id, store) else severity
    duplicate = None if duplicate is not None and await is_rejected(duplicate.prediction_id, store) else duplicate

    def is_superseded(latest: Incident) -> bool:
        """Return whether the stored owner was chosen with newer information: an explanation or a reassignment."""
        is_explained = found.explanation == read.explanation != latest.explanation
        return is_explained or latest.hops != read.hops

    return await update_incident(
        read.id,
        lambda latest: replace(
            latest,
            owner=latest.owner if is_superseded(latest) else found.owner,
            explanation=found.explanation if found.explanation != read.explanation else latest.explanation,
            runbook=found.runbook or latest.runbook,
            cut_short=found.cut_short if found.cut_short != read.cut_short else latest.cut_short,
            suggested_severity=latest.suggested_severity if latest.severity_by else severity,
            suggested_duplicate=latest.suggested_duplicate if latest.duplicate_of else duplicate,
            stage=found.stage if latest.stage is read.stage else latest.stage,
            progress=progress,
        ),
        store,
    )


async def report_progress(incident_id: str, doing: str, *, store: Store) -> None:
    """Show the current activity on the incident."""
    await update_incident(incident_id, lambda latest: replace(latest, progress=doing), store)


async def conclude_investigation(incident_id: str, *, store: Store) -> None:
    """Mark the investigation as done, unless the incident is silenced or merged."""

    def concluded(latest: Incident) -> Incident:
        is_put_off = latest.silenced is not None or latest.absorbed is not None
        return latest if is_put_off else replace(latest, stage=Stage.DONE)

    await update_incident(incident_id, concluded, store)


async def is_under_way(incident_id: str, *, store: Store) -> bool:
    """Return whether a posted incident is still being investigated."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None or incident.message is None:
        return False
    return incident.stage is not Stage.DONE and incident.silenced is None and incident.absorbed is None
