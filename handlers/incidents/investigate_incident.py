"""One step of an investigation: read the incident, find something out, and save it onto the latest revision."""

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
    """Save what `investigate` finds: owner, explanation, suggestions and stage.

    Alerts that arrived meanwhile are kept, and so is the owner if people sent the incident to another team meanwhile,
    and what they said of a suggestion. Whose it is is always asked in the light of the cause: if another step found that
    meanwhile, `investigate` is asked again, and if people sent it on while this step did, the teams negotiate again.
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
    """The wish that the teams negotiate anew, once for each hop and reason."""
    key = ":".join(filter(None, (TRIAGE_AGAIN, incident.id, str(len(incident.hops)), why)))
    return Task(key, "triage_again", incident.id, {})


async def save_findings(found: Incident, read: Incident, *, progress: str = "", store: Store) -> Incident:
    """The same for what is known so far: `read` is the incident as it was when the step began, `progress` what goes on.

    What this step did not look into stays as another one that ran at the same time left it. Returns what is stored now.
    """
    severity, duplicate = found.suggested_severity, found.suggested_duplicate
    # A person may have called it wrong while this step was at work.
    severity = None if severity is not None and await is_rejected(severity.prediction_id, store) else severity
    duplicate = None if duplicate is not None and await is_rejected(duplicate.prediction_id, store) else duplicate

    def is_outdone(latest: Incident) -> bool:
        """Return whether the owner that stands there by now was found, or named by people, knowing more."""
        is_explained = found.explanation == read.explanation != latest.explanation
        return is_explained or latest.hops != read.hops

    return await update_incident(
        read.id,
        lambda latest: replace(
            latest,
            owner=latest.owner if is_outdone(latest) else found.owner,
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
    """Say on the incident what is being done right now."""
    await update_incident(incident_id, lambda latest: replace(latest, progress=doing), store)


async def conclude_investigation(incident_id: str, *, store: Store) -> None:
    """The work is done, whatever came of it, unless it was put off: the incident is silenced, or a part of another."""

    def concluded(latest: Incident) -> Incident:
        is_put_off = latest.silenced is not None or latest.absorbed is not None
        return latest if is_put_off else replace(latest, stage=Stage.DONE)

    await update_incident(incident_id, concluded, store)


async def is_under_way(incident_id: str, *, store: Store) -> bool:
    """Return whether an incident that stands in a chat is being looked into, so that more will be shown of it."""
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None or incident.message is None:
        return False
    return incident.stage is not Stage.DONE and incident.silenced is None and incident.absorbed is None
