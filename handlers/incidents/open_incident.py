"""An alert delivery arrives: deduplicate, group, store. When this returns, nothing can be lost any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta

from core.incidents.folding import fold, is_belated, open_from, reopens
from core.model.conversation import Place
from core.model.correlation import correlated, parse_correlation
from core.model.errors import Conflict
from core.model.incident import AlertDelivery, Incident, IncidentState, Stage
from core.ports import Store, Task, Transaction
from handlers.knowledge.redaction import Redact, as_it_is, redacted

INVESTIGATE = "investigate_incident"
PRESENT = "present_incident"

MAX_ATTEMPTS = 10  # of writers that lost a race; each loser lets a winner through
MAX_NAMES = 300  # characters of the names of groups in an error
PATIENCE = timedelta(minutes=5)  # after which whoever was to bring a message up to date is believed to have failed

PlacesFor = Callable[[AlertDelivery], tuple[Place, ...]]


async def open_incident(
    delivery: AlertDelivery, *, store: Store, places_for: PlacesFor, new_id: Callable[[], str]
) -> Incident | None:
    """The same for one delivery."""
    return (await open_incidents([delivery], store=store, places_for=places_for, new_id=new_id))[0]


async def open_incidents(
    deliveries: Sequence[AlertDelivery],
    *,
    store: Store,
    places_for: PlacesFor,
    new_id: Callable[[], str],
    redact: Redact = as_it_is,
) -> list[Incident | None]:
    """Open incidents, or fold deliveries into those of their groups, and ask for the work that follows: all or nothing.

    An incident that was resolved a short while ago is reopened. For each delivery its incident, None if there is nothing
    to do: it was seen before, is older than what is known, or resolves or changes what nobody knows of. `redact` takes
    names, addresses and secrets out of the notes on how alerts ended, which are learned from.
    """
    deliveries = [redacted_notes(each, redact) for each in deliveries]
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                groups = await _groups(deliveries, transaction)
                taken: list[Incident | None] = []
                for each in deliveries:
                    with _request_of(each):
                        taken.append(await groups[_group(each)].take(each, places_for, new_id))
                for group in groups.values():
                    await group.save()
                return taken
        except Conflict:
            continue
    names = ", ".join(dict.fromkeys(each.group_key for each in deliveries))[:MAX_NAMES]
    raise Conflict(f"Alert group {names}: {MAX_ATTEMPTS} attempts to store a delivery failed.")


def _request_of(delivery: AlertDelivery) -> AbstractContextManager[None]:
    """Return a context that assigns the work for a delivery to its own request, although others are stored with it."""
    correlation = parse_correlation(delivery.correlation)
    return nullcontext() if correlation is None else correlated(correlation)


def redacted_notes(delivery: AlertDelivery, redact: Redact) -> AlertDelivery:
    """The delivery with notes that may be kept."""
    if not any(alert.note for alert in delivery.alerts):
        return delivery
    return replace(
        delivery, alerts=tuple(replace(alert, note=redacted(alert.note, redact)) for alert in delivery.alerts)
    )


async def _groups(deliveries: Sequence[AlertDelivery], transaction: Transaction) -> dict[tuple[str, str], _Group]:
    """The groups that deliveries are of, with what is known of each."""
    latest = {
        group: await transaction.incidents.latest_for(*group)
        for group in dict.fromkeys(_group(each) for each in deliveries)
    }
    keys = {_delivery_key(incident, each) for each in deliveries if (incident := latest[_group(each)]) is not None}
    keys |= {each.key for each in deliveries if each.one_event}
    known = await transaction.incidents.known_deliveries(keys) if keys else frozenset[str]()
    return {group: _Group(incident, known, transaction) for group, incident in latest.items()}


def _group(delivery: AlertDelivery) -> tuple[str, str]:
    return delivery.source, delivery.group_key


def _delivery_key(incident: Incident, delivery: AlertDelivery) -> str:
    """Names what was told since an incident was opened, or reopened: what fires anew is news."""
    return f"{incident.id}:{incident.reopened_count}:{delivery.key}"


class _Group:
    """The alert group of some deliveries in one transaction: its incident is written once, whatever they say."""

    def __init__(self, incident: Incident | None, known: frozenset[str], transaction: Transaction) -> None:
        """`known` holds those keys of the deliveries at hand that were taken before."""
        self._incident = incident
        self._saved = incident
        self._known = known
        self._received: dict[str, datetime] = {}
        self._transaction = transaction

    async def take(self, delivery: AlertDelivery, places_for: PlacesFor, new_id: Callable[[], str]) -> Incident | None:
        if delivery.one_event and (delivery.key in self._known or delivery.key in self._received):
            return None
        latest = self._incident
        if latest is None or not (latest.state is IncidentState.OPEN or reopens(latest, delivery)):
            return await self._open(delivery, places_for, new_id) if delivery.fires else None
        if is_belated(latest, delivery):
            return None
        incident = fold(latest, delivery)
        if incident is latest or not self._is_new(delivery, incident):
            return None
        if latest.cut_short and incident.reopened_count > latest.reopened_count and not incident.flapping:
            incident = replace(incident, cut_short="", stage=Stage.TRIAGING)
            await self._transaction.tasks.add(investigate_task(incident))
        self._incident = incident
        return incident

    async def save(self) -> None:
        """Write what was folded in, and have it shown."""
        await self._transaction.incidents.add_deliveries(self._received)
        incident, saved = self._incident, self._saved
        if incident is None or saved is None or incident is saved:
            return
        self._incident = self._saved = replace(incident, revision=saved.revision + 1)
        await self._transaction.incidents.save(self._incident)
        await ask_to_present(self._incident, self._transaction, incident.updated_at)

    async def _open(self, delivery: AlertDelivery, places_for: PlacesFor, new_id: Callable[[], str]) -> Incident:
        await self.save()
        place, *also_in = places_for(delivery)
        incident = open_from(delivery, new_id(), place, tuple(also_in))
        self._is_new(delivery, incident)
        await self._transaction.incidents.save(incident)
        await self._transaction.tasks.add(Task(f"{INVESTIGATE}:{incident.id}", INVESTIGATE, incident.id, {}))
        intent = incident_intent(incident.id)
        await self._transaction.posts.outdate(intent, incident.place, delivery.received_at, PATIENCE)
        self._incident = self._saved = incident
        return incident

    def _is_new(self, delivery: AlertDelivery, incident: Incident) -> bool:
        """Return whether nothing said the same before, and remember that this did."""
        key = _delivery_key(incident, delivery)
        if key in self._known or key in self._received:
            return False
        self._received[key] = delivery.received_at
        if delivery.one_event:
            self._received[delivery.key] = delivery.received_at
        return True


async def ask_to_present(incident: Incident, transaction: Transaction, at: datetime) -> None:
    """Have a saved incident's message brought up to date, unless somebody is about to: a storm makes no queue."""
    intent = incident_intent(incident.id)
    wishes = await transaction.posts.outdate(intent, incident.place, at, PATIENCE)
    if wishes is not None:
        # What belongs to an incident changes without it: a revision may have to be shown more than once.
        task = present_task(incident)
        await transaction.tasks.add(replace(task, key=f"{task.key}:{wishes}"))


def incident_intent(incident_id: str) -> str:
    """The intent of an incident's message."""
    return f"incident:{incident_id}"


def investigate_task(incident: Incident) -> Task:
    """The wish to look into an incident again, as it is at this revision."""
    return Task(f"{INVESTIGATE}:{incident.id}:{incident.revision}", INVESTIGATE, incident.id, {})


def present_task(incident: Incident) -> Task:
    """The wish that the chat shows this revision of an incident."""
    return Task(f"{PRESENT}:{incident.id}:{incident.revision}", PRESENT, incident.id, {})
