"""Update a stored incident safely under concurrent writers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.model.errors import Conflict
from core.model.incident import Incident
from core.ports import Store, Transaction
from handlers.incidents.stored_incident import stored_incident

MAX_ATTEMPTS = 10  # at optimistic locking; every failed attempt means that another writer succeeded


async def update_incident(incident_id: str, change: Callable[[Incident], Incident], store: Store) -> Incident:
    """Apply `change` to the latest revision, and save the result as the next one.

    An unchanged incident is not saved.
    """

    async def updated(latest: Incident, transaction: Transaction) -> Incident:
        changed = change(latest)
        return latest if changed == latest else await save_next(changed, latest, transaction)

    return await change_incident(incident_id, updated, store)


async def change_incident(
    incident_id: str, change: Callable[[Incident, Transaction], Awaitable[Incident]], store: Store
) -> Incident:
    """Run `change`, which saves its own result, on the latest revision. Retries after a conflict."""
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
