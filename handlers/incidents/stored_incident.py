"""Load an incident that must exist."""

from __future__ import annotations

from core.model.errors import PlumblineError
from core.model.incident import Incident
from core.ports import Transaction


async def stored_incident(incident_id: str, transaction: Transaction) -> Incident:
    """Return the stored incident. Raises PlumblineError if it does not exist."""
    incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"Incident {incident_id} does not exist.")
    return incident
