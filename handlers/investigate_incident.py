"""One step of an investigation: read the incident, find something out, and save it onto the latest revision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.errors import PlumblineError
from core.incident import Incident, Stage
from core.ports import Store
from handlers.update_incident import update_incident


async def investigate_incident(
    incident_id: str, investigate: Callable[[Incident], Awaitable[Incident]], *, store: Store
) -> None:
    """Save what `investigate` finds: owner, explanation and stage.

    Alerts that arrived meanwhile are kept, and so is the owner if people sent the incident to another team meanwhile.
    """
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"Incident {incident_id} does not exist (any more).")
    found = await investigate(incident)
    await update_incident(
        incident_id,
        lambda latest: replace(
            latest,
            owner=found.owner if latest.hops == incident.hops else latest.owner,
            explanation=found.explanation,
            stage=found.stage,
            progress="",
        ),
        store,
    )


async def report_progress(incident_id: str, doing: str, *, store: Store) -> None:
    """Say on the incident what is being done right now."""
    await update_incident(incident_id, lambda latest: replace(latest, progress=doing), store)


async def conclude_investigation(incident_id: str, *, store: Store) -> None:
    """The work is done, whatever came of it."""
    await update_incident(incident_id, lambda latest: replace(latest, stage=Stage.DONE), store)
