"""Change a stored incident, whoever else changes it at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.model.errors import Conflict
from core.model.incident import Incident
from core.ports import Store, Transaction
from handlers.incidents.stored_incident import stored_incident

MAX_ATTEMPTS = 10  # of writers that lost a race; each loser lets a winner through


async def update_incident(incident_id: str, change: Callable[[Incident], Incident], store: Store) -> Incident:
    """Apply `change` to the latest revision and save it as the next one. Does nothing if nothing changes."""

    async def updated(latest: Incident, transaction: Transaction) -> Incident:
        changed = change(latest)
        return latest if changed == latest else await save_next(changed, latest, transaction)

    return await change_incident(incident_id, updated, store)


async def change_incident(
    incident_id: str, change: Callable[[Incident, Transaction], Awaitable[Incident]], store: Store
) -> Incident:
    """Have `change` do and save what it wants with the latest revision, again if another writer was first."""
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                return await change(await stored_incident(incident_id, transaction), transaction)
        except Conflict:
            continue
    raise Conflict(f"Incident {incident_id} is changed too often to save anything: {MAX_ATTEMPTS} attempts failed.")


async def save_next(changed: Incident, latest: Incident, transaction: Transaction) -> Incident:
    """Save an incident as the revision after `latest`."""
    saved = replace(changed, revision=latest.revision + 1)
    await transaction.incidents.save(saved)
    return saved
