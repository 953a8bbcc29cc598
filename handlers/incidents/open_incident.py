"""Deduplicate, group and store alert deliveries. Once this returns, no alert can be lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from hashlib import sha256

from core.incidents.folding import fold, is_belated, open_from, recurring, reopens
from core.incidents.posted_alerts import CHAT, is_of_bot, joined, twin_of
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.alert import Alert, AlertDelivery
from core.model.conversation import Place
from core.model.errors import Conflict
from core.model.incident import Incident, IncidentState, Stage
from core.model.running import correlated, parse_correlation
from core.model.text import name_key, visible_name
from core.ports import Store, Task, Transaction
from handlers.common.stored_incident import MAX_ATTEMPTS, incident_intent

INVESTIGATE = "investigate_incident"
PRESENT = "present_incident"

MAX_NAMES = 300  # characters of group names in an error
MAX_TWINS = 50  # latest open incidents among which the same alert of another sender is looked for
UPDATE_TIMEOUT = timedelta(minutes=5)  # after this, an update that did not finish counts as failed

PlacesFor = Callable[[AlertDelivery], tuple[Place, ...]]
NO_SPELLING: Mapping[str, str] = {}
Places = Callable[[], tuple[Place, ...]]


async def open_incident(
    delivery: AlertDelivery,
    *,
    store: Store,
    places_for: PlacesFor,
    new_id: Callable[[], str],
    redact: Redact = without_redaction,
    spelling: Mapping[str, str] = NO_SPELLING,
) -> Incident | None:
    """Open or update the incident of one delivery. See `open_incidents`."""
    opened = await open_incidents(
        [delivery], store=store, places_for=places_for, new_id=new_id, redact=redact, spelling=spelling
    )
    return opened[0]


async def open_incidents(
    deliveries: Sequence[AlertDelivery],
    *,
    store: Store,
    places_for: PlacesFor,
    new_id: Callable[[], str],
    redact: Redact = without_redaction,
    spelling: Mapping[str, str] = NO_SPELLING,
) -> list[Incident | None]:
    """Open incidents or fold deliveries into existing ones, and queue the follow-up tasks, in one transaction.

    An incident that was resolved recently is reopened. Returns the incident for each delivery; None if it was seen
    before, is older than the known state, or resolves or changes an unknown incident. `redact` removes names, addresses
    and secrets from all text of alerts, whatever their sender; routes are matched before, because they may name them.
    `spelling` has the names of known services by their keys.
    """
    sent = [_spelled(delivery, spelling) for delivery in deliveries]
    deliveries = [redacted_delivery(delivery, redact) for delivery in sent]
    for _ in range(MAX_ATTEMPTS):
        try:
            async with store.transaction() as transaction:
                groups = await _groups(deliveries, transaction)
                taken: list[Incident | None] = []
                for original, each in zip(sent, deliveries, strict=True):
                    with _request_of(each):
                        taken.append(await groups[_group(each)].take(each, partial(places_for, original), new_id))
                for group in groups.values():
                    await group.save()
                return taken
        except Conflict:
            continue
    names = ", ".join(dict.fromkeys(each.group_key for each in deliveries))[:MAX_NAMES]
    raise Conflict(f"Alert group {names}: {MAX_ATTEMPTS} attempts to store a delivery failed.")


def _request_of(delivery: AlertDelivery) -> AbstractContextManager[None]:
    """Return a context in which new tasks carry the delivery's own correlation id."""
    correlation = parse_correlation(delivery.correlation)
    return nullcontext() if correlation is None else correlated(correlation)


def _spelled(delivery: AlertDelivery, spelling: Mapping[str, str]) -> AlertDelivery:
    named = [(alert, spelling.get(name_key(alert.service), visible_name(alert.service))) for alert in delivery.alerts]
    return replace(delivery, alerts=tuple(replace(alert, service=service) for alert, service in named))


def redacted_delivery(delivery: AlertDelivery, redact: Redact) -> AlertDelivery:
    """Return the delivery with redacted texts. The alerts of a storm repeat their texts, so each is read once."""
    clean = cache(partial(redacted, redact=redact))
    alerts = tuple(_redacted_alert(alert, clean) for alert in delivery.alerts)
    return replace(delivery, group_key=_identity(delivery.group_key, clean), alerts=alerts)


def _redacted_alert(alert: Alert, clean: Callable[[str], str]) -> Alert:
    return replace(
        alert,
        fingerprint=_identity(alert.fingerprint, clean),
        name=clean(alert.name),
        service=clean(alert.service),
        summary=clean(alert.summary),
        description=clean(alert.description),
        labels={name: _redacted_label(name, value, clean) for name, value in alert.labels.items()},
        url=_redacted_url(alert.url, clean),
        runbook_url=_redacted_url(alert.runbook_url, clean),
        note=clean(alert.note),
        paged=clean(alert.paged),
        acknowledged=alert.acknowledged and replace(alert.acknowledged, by=clean(alert.acknowledged.by)),
        end=alert.end
        and replace(
            alert.end,
            word=clean(alert.end.word),
            into=clean(alert.end.into),
            url=_redacted_url(alert.end.url, clean),
        ),
    )


def _redacted_label(name: str, value: str, clean: Callable[[str], str]) -> str:
    """Return the value, redacted with its name before it, which may say that it is a secret."""
    before, _, rest = clean(f"{name}: {value}").partition(": ")
    return rest if before == name else clean(value)


def _redacted_url(url: str, clean: Callable[[str], str]) -> str:
    """Return the address if it has nothing to remove, else the part before its query; empty if that has."""
    return next((each for each in (url, url.partition("#")[0].partition("?")[0]) if clean(each) == each), "")


def _identity(key: str, clean: Callable[[str], str]) -> str:
    """Return the key, or its digest if it has something to remove, because two keys may differ only in that."""
    return key if clean(key) == key else sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


async def _groups(deliveries: Sequence[AlertDelivery], transaction: Transaction) -> dict[tuple[str, str], _Group]:
    """Return the alert group of each delivery, with its stored state."""
    latest = {
        group: await transaction.incidents.latest_for(*group)
        for group in dict.fromkeys(_group(each) for each in deliveries)
    }
    keys = {_delivery_key(incident, each) for each in deliveries if (incident := latest[_group(each)]) is not None}
    keys |= {each.key for each in deliveries if each.one_event}
    delivered = await transaction.incidents.known_deliveries(keys) if keys else frozenset[str]()
    of_bots = list[list[Incident]]()
    return {group: _Group(incident, delivered, transaction, of_bots) for group, incident in latest.items()}


def _group(delivery: AlertDelivery) -> tuple[str, str]:
    return delivery.source, delivery.group_key


def _delivery_key(incident: Incident, delivery: AlertDelivery) -> str:
    """Return the deduplication key of a delivery. Reopening an incident makes the same delivery new again."""
    return f"{incident.id}:{incident.reopened_count}:{delivery.key}"


class _Group:
    """An alert group within one transaction. Its incident is written once, whatever the number of deliveries."""

    def __init__(
        self,
        incident: Incident | None,
        delivered: frozenset[str],
        transaction: Transaction,
        of_bots: list[list[Incident]],
    ) -> None:
        """Create the group. `delivered` contains those delivery keys that were received before.

        `of_bots` caches for the groups of a transaction the open incidents of bots, if they were read.
        """
        self._of_bots = of_bots
        self._incident = incident
        self._saved = incident
        self._known = delivered
        self._received: dict[str, datetime] = {}
        self._transaction = transaction

    async def take(self, delivery: AlertDelivery, places: Places, new_id: Callable[[], str]) -> Incident | None:
        if delivery.one_event and (delivery.key in self._known or delivery.key in self._received):
            return None
        latest = self._incident
        if latest is None or not (latest.state is IncidentState.OPEN or reopens(latest, delivery)):
            return await self._open(delivery, places, new_id) if delivery.fires else None
        if is_belated(latest, delivery):
            return None
        incident = fold(latest, delivery)
        if incident is latest or not self._is_new(delivery, incident):
            return None
        if latest.findings.cut_short and incident.reopened_count > latest.reopened_count and not incident.flapping:
            incident = replace(incident.with_findings(cut_short=""), stage=Stage.TRIAGING)
            await self._transaction.tasks.add(investigate_task(incident))
        self._incident = incident
        return incident

    async def save(self) -> None:
        """Write the folded incident, and queue the update of its message."""
        await self._transaction.incidents.add_deliveries(self._received)
        incident, saved = self._incident, self._saved
        if incident is None or saved is None or incident is saved:
            return
        self._incident = self._saved = replace(incident, revision=saved.revision + 1)
        await self._transaction.incidents.save(self._incident)
        await ask_to_present(self._incident, self._transaction, incident.updated_at)

    async def _open(self, delivery: AlertDelivery, places: Places, new_id: Callable[[], str]) -> Incident:
        await self.save()
        place, *also_in = places()
        incident = recurring(open_from(delivery, new_id(), place, tuple(also_in)), self._incident)
        twin = twin_of(incident, await self._others(incident))
        if twin is not None:
            return await self._join(twin, delivery, incident)
        self._is_new(delivery, incident)
        await self._transaction.incidents.save(incident)
        await self._transaction.tasks.add(Task(f"{INVESTIGATE}:{incident.id}", INVESTIGATE, incident.id, {}))
        intent = incident_intent(incident.id)
        await self._transaction.posts.mark_stale(intent, incident.placement.place, delivery.received_at, UPDATE_TIMEOUT)
        self._incident = self._saved = incident
        return incident

    async def _others(self, incident: Incident) -> list[Incident]:
        """Return the open incidents that may be of the same alert: for a webhook, those of bots, read once in a batch."""
        if is_of_bot(incident):
            self._of_bots.clear()
            return await self._transaction.incidents.latest_open(MAX_TWINS)
        if not self._of_bots:
            self._of_bots.append(await self._transaction.incidents.latest_open(MAX_TWINS, CHAT))
        return self._of_bots[0]

    async def _join(self, twin: Incident, delivery: AlertDelivery, opened: Incident) -> Incident:
        """Tell another sender's incident of the same alert, and investigate it again if its service is known only now."""
        self._is_new(delivery, twin)
        joint = joined(twin, delivery, opened)
        if joint is twin:
            return twin
        self._of_bots.clear()  # it is another one now
        joint = replace(joint, revision=twin.revision + 1)
        await self._transaction.incidents.save(joint)
        if joint.service != twin.service:
            await self._transaction.tasks.add(investigate_task(joint))
        await ask_to_present(joint, self._transaction, delivery.received_at)
        if _group(delivery) == (joint.source, joint.group_key):
            self._incident = self._saved = joint
        return joint

    def _is_new(self, delivery: AlertDelivery, incident: Incident) -> bool:
        """Record the delivery. Returns whether nothing equal was received before."""
        key = _delivery_key(incident, delivery)
        if key in self._known or key in self._received:
            return False
        self._received[key] = delivery.received_at
        if delivery.one_event:
            self._received[delivery.key] = delivery.received_at
        return True


async def ask_to_present(incident: Incident, transaction: Transaction, at: datetime) -> None:
    """Queue an update of the incident's message, unless one is already pending."""
    await ask_to_update(incident_intent(incident.id), incident.placement.place, present_task(incident), transaction, at)


async def ask_to_update(intent: str, place: Place, task: Task, transaction: Transaction, at: datetime) -> None:
    """Queue the task that updates the message of an intent, unless one is already pending.

    The task is added anew for each update, because what it shows may change without another revision of an incident.
    """
    pending_updates = await transaction.posts.mark_stale(intent, place, at, UPDATE_TIMEOUT)
    if pending_updates is not None:
        await transaction.tasks.add(replace(task, key=f"{task.key}:{pending_updates}"))


def investigate_task(incident: Incident) -> Task:
    """Return the task that investigates this revision of the incident again."""
    return Task(f"{INVESTIGATE}:{incident.id}:{incident.revision}", INVESTIGATE, incident.id, {})


def present_task(incident: Incident) -> Task:
    """Return the task that shows this revision of the incident in the chat."""
    return Task(f"{PRESENT}:{incident.id}:{incident.revision}", PRESENT, incident.id, {})
