"""An alert delivery arrives: deduplicate, group, store. When this returns, nothing can be lost any more."""

from __future__ import annotations

from collections.abc import Callable

from core.conversation import Place
from core.errors import Conflict
from core.incident import AlertDelivery, AlertStatus, Incident, fold, open_from
from core.ports import Store, Task, Transaction

INVESTIGATE = "investigate_incident"
PRESENT = "present_incident"

MAX_ATTEMPTS = 10  # of writers that lost a race; each loser lets a winner through


async def open_incident(
    delivery: AlertDelivery, *, store: Store, place_for: Callable[[dict[str, str]], Place], new_id: Callable[[], str]
) -> Incident | None:
    """Open an incident, or fold the delivery into the open one of its group, and ask for the work that follows.

    Returns None if there is nothing to do: the delivery was seen before, or resolves what nobody knows of.
    """
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                return await _record(delivery, transaction, place_for, new_id)
        except Conflict:
            continue
    raise Conflict(f"Alert group {delivery.group_key}: {MAX_ATTEMPTS} attempts to store a delivery failed.")


async def _record(
    delivery: AlertDelivery,
    transaction: Transaction,
    place_for: Callable[[dict[str, str]], Place],
    new_id: Callable[[], str],
) -> Incident | None:
    if not await transaction.incidents.add_delivery(delivery.key, delivery.received_at):
        return None
    known = await transaction.incidents.open_for(delivery.source, delivery.group_key)
    if known is not None:
        incident = fold(known, delivery)
        await transaction.incidents.save(incident)
        # One waiting presentation shows everything that arrives before it runs: a storm makes no queue.
        if not await transaction.tasks.has_waiting(PRESENT, incident.id):
            await transaction.tasks.add(present_task(incident))
        return incident
    firing = [alert for alert in delivery.alerts if alert.status is AlertStatus.FIRING]
    if not firing:
        return None
    incident = open_from(delivery, new_id(), place_for(firing[0].labels))
    await transaction.incidents.save(incident)
    await transaction.tasks.add(Task(f"{INVESTIGATE}:{incident.id}", INVESTIGATE, incident.id, {}))
    return incident


def present_task(incident: Incident) -> Task:
    """The wish that the chat shows this revision of an incident."""
    return Task(f"{PRESENT}:{incident.id}:{incident.revision}", PRESENT, incident.id, {})
