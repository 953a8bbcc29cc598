"""An alert delivery arrives: deduplicate, group, store. When this returns, nothing can be lost any more."""

from __future__ import annotations

from collections.abc import Callable

from core.conversation import Place
from core.errors import Conflict
from core.folding import fold, open_from, reopens
from core.incident import AlertDelivery, Incident, IncidentState
from core.ports import Store, Task, Transaction

INVESTIGATE = "investigate_incident"
PRESENT = "present_incident"

MAX_ATTEMPTS = 10  # of writers that lost a race; each loser lets a winner through


async def open_incident(
    delivery: AlertDelivery,
    *,
    store: Store,
    places_for: Callable[[AlertDelivery], tuple[Place, ...]],
    new_id: Callable[[], str],
) -> Incident | None:
    """Open an incident, or fold the delivery into that of its group, and ask for the work that follows.

    An incident that was resolved a short while ago is reopened. Returns None if there is nothing to do: the delivery was
    seen before, is older than what is known, or resolves or changes what nobody knows of.
    """
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                return await _record(delivery, transaction, places_for, new_id)
        except Conflict:
            continue
    raise Conflict(f"Alert group {delivery.group_key}: {MAX_ATTEMPTS} attempts to store a delivery failed.")


async def _record(
    delivery: AlertDelivery,
    transaction: Transaction,
    places_for: Callable[[AlertDelivery], tuple[Place, ...]],
    new_id: Callable[[], str],
) -> Incident | None:
    latest = await transaction.incidents.latest_for(delivery.source, delivery.group_key)
    if latest is None or not (latest.state is IncidentState.OPEN or reopens(latest, delivery)):
        return await _opened(delivery, transaction, places_for, new_id) if delivery.fires else None
    incident = fold(latest, delivery)
    if incident is latest or not await _is_new(delivery, incident, transaction):
        return None
    await transaction.incidents.save(incident)
    # One waiting presentation shows everything that arrives before it runs: a storm makes no queue.
    if not await transaction.tasks.has_waiting(PRESENT, incident.id):
        await transaction.tasks.add(present_task(incident))
    return incident


async def _opened(
    delivery: AlertDelivery,
    transaction: Transaction,
    places_for: Callable[[AlertDelivery], tuple[Place, ...]],
    new_id: Callable[[], str],
) -> Incident:
    place, *also_in = places_for(delivery)
    incident = open_from(delivery, new_id(), place, tuple(also_in))
    await _is_new(delivery, incident, transaction)
    await transaction.incidents.save(incident)
    await transaction.tasks.add(Task(f"{INVESTIGATE}:{incident.id}", INVESTIGATE, incident.id, {}))
    return incident


async def _is_new(delivery: AlertDelivery, incident: Incident, transaction: Transaction) -> bool:
    """Whether nothing said the same since the incident was opened, or reopened: what fires anew is news."""
    key = f"{incident.id}:{incident.reopened_count}:{delivery.key}"
    return await transaction.incidents.add_delivery(key, delivery.received_at)


def present_task(incident: Incident) -> Task:
    """The wish that the chat shows this revision of an incident."""
    return Task(f"{PRESENT}:{incident.id}:{incident.revision}", PRESENT, incident.id, {})
