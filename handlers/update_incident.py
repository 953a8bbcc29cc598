"""Change a stored incident, whoever else changes it at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.errors import Conflict, PlumblineError
from core.incident import Incident
from core.ports import Store

MAX_ATTEMPTS = 10  # of writers that lost a race; each loser lets a winner through


async def update_incident(incident_id: str, change: Callable[[Incident], Incident], store: Store) -> Incident:
    """Apply `change` to the latest revision and save it as the next one. Does nothing if nothing changes."""
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                latest = await transaction.incidents.get(incident_id)
                if latest is None:
                    raise PlumblineError(f"Incident {incident_id} does not exist (any more).")
                changed = change(latest)
                if changed == latest:
                    return latest
                changed = replace(changed, revision=latest.revision + 1)
                await transaction.incidents.save(changed)
                return changed
        except Conflict:
            continue
    raise Conflict(f"Incident {incident_id} is changed too often to save anything: {MAX_ATTEMPTS} attempts failed.")
