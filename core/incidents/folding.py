"""Fold alert deliveries into an incident: open, update, resolve and reopen it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from core.confidence.resolution import read_resolution
from core.model.alert import MAX_KEPT_ALERTS, NAMELESS, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Placement
from core.model.incident import Incident, IncidentState, Resolution

REOPEN_WINDOW = timedelta(minutes=30)  # after its resolution, in which an incident is reopened if its group fires
FLAPS = 3  # reopenings within FLAP_WINDOW that make an incident flapping
KEPT_REOPENINGS = 50  # latest ones, by which each firing of an alert is counted once
FLAP_WINDOW = timedelta(hours=2)  # also the reopening window of a flapping incident
KEPT = ("service", "description", "url", "runbook_url")  # fields that an event without them does not erase
REPLICA_LAG = timedelta(seconds=45)  # of a sender's replica; Alertmanager: 15 s per peer


def open_from(delivery: AlertDelivery, incident_id: str, place: Place, also_in: tuple[Place, ...] = ()) -> Incident:
    """Return the incident that a delivery opens, named after the first of its firing alerts (at least one)."""
    first = delivery.first_firing
    return fold(
        Incident(
            id=incident_id,
            source=delivery.source,
            group_key=delivery.group_key,
            title=next((text for text in (first.summary, first.name) if text.strip()), NAMELESS),
            severity=first.severity,
            service=first.service,
            labels=first.labels,
            alerts=(),
            alert_count=0,
            delivery_count=0,
            started_at=first.starts_at,
            opened_at=delivery.received_at,
            updated_at=delivery.received_at,
            placement=Placement(place, also_in),
            revision=0,
        ),
        delivery,
    )


def fold(incident: Incident, delivery: AlertDelivery) -> Incident:
    """Return the incident with the alerts of one more delivery; resolved once none of its alerts is firing.

    Only an incident whose alerts were all cured takes the note of one of them.

    Returns the same object if the delivery contains nothing newer than what is known.
    """
    current = {alert.fingerprint: alert for alert in incident.alerts}
    updates = [_succeeding(current.get(alert.fingerprint), alert) for alert in delivery.alerts]
    delivered = {alert.fingerprint: alert for alert in updates if alert is not None}
    if not delivered:
        return incident
    new = [each for each in delivered if each not in current and not _holds(incident.also_firing, each)]
    seen_count = incident.alert_count - incident.unseen_count + len(new)
    alert_count = max(incident.alert_count, seen_count, len(delivered) + delivery.omitted)
    firing, settled = _by_status((current | delivered).values())
    also_firing = _changed(incident.also_firing, delivered, [alert.fingerprint for alert in firing[MAX_KEPT_ALERTS:]])
    is_firing = bool(firing or also_firing)
    is_cured = not is_firing and all(alert.is_cured for alert in settled)
    is_reopened = is_firing and incident.state is IncidentState.RESOLVED
    reopenings = (*incident.reopenings, delivery.received_at)[-KEPT_REOPENINGS:] if is_reopened else incident.reopenings
    return replace(
        incident,
        alerts=tuple((firing + settled)[:MAX_KEPT_ALERTS]),
        also_firing=also_firing,
        alert_count=alert_count,
        unseen_count=alert_count - seen_count,
        delivery_count=incident.delivery_count + 1,
        reopened_count=incident.reopened_count + is_reopened,
        reopenings=reopenings,
        flapping=incident.flapping or (len(reopenings) >= FLAPS and reopenings[-1] - reopenings[-FLAPS] <= FLAP_WINDOW),
        severity=_severity(incident, delivered.values()),
        started_at=min([incident.started_at, *(alert.starts_at for alert in delivered.values() if alert in firing)]),
        updated_at=delivery.received_at,
        state=IncidentState.OPEN if is_firing else IncidentState.RESOLVED,
        resolved_at=None if is_firing else delivery.received_at,
        resolution=incident.resolution or (_noted(delivery) if is_cured else None),
        revision=incident.revision + 1,
    )


def _changed(ordered: tuple[str, ...], without: Collection[str], added: Iterable[str]) -> tuple[str, ...]:
    """Return the sorted names after a change, without a new sort, because a storm adds single names to ten thousand."""
    changed = list(ordered)
    for name in without:
        if _holds(changed, name):
            del changed[bisect_left(changed, name)]
    for name in added:
        if not _holds(changed, name):
            insort(changed, name)
    return tuple(changed)


def _holds(ordered: Sequence[str], name: str) -> bool:
    place = bisect_left(ordered, name)
    return place < len(ordered) and ordered[place] == name


def _severity(incident: Incident, alerts: Iterable[Alert]) -> Severity:
    """Return the worst severity reported so far, unless a person set the severity."""
    if incident.severity_by:
        return incident.severity
    return min((incident.severity, *(alert.severity for alert in alerts)), key=list(Severity).index)


def reopens(incident: Incident, delivery: AlertDelivery) -> bool:
    """Return whether a delivery of its group reopens a resolved incident, because it fires again soon afterwards."""
    resolved_at = incident.resolved_at
    window = FLAP_WINDOW if incident.flapping else REOPEN_WINDOW
    return resolved_at is not None and delivery.fires and delivery.received_at - resolved_at <= window


def is_belated(incident: Incident, delivery: AlertDelivery) -> bool:
    """Return whether a lagging replica of the sender reports only alerts as firing that were resolved a moment ago.

    Every firing alert in the delivery then has the start of the resolved one.
    """
    resolved_at = incident.resolved_at
    if not delivery.replicated or resolved_at is None or delivery.received_at - resolved_at > REPLICA_LAG:
        return False
    over = {(alert.fingerprint, alert.starts_at) for alert in incident.alerts if alert.status is AlertStatus.RESOLVED}
    firing = {(a.fingerprint, a.starts_at) for a in delivery.alerts if a.status is AlertStatus.FIRING}
    return bool(firing) and not delivery.omitted and firing <= over


def _succeeding(current: Alert | None, update: Alert) -> Alert | None:
    """Return a known alert after an update; None if the update changes nothing."""
    if current is None:
        return update if update.status is not AlertStatus.UPDATED else None
    # Some senders leave out in later events what they said in the first.
    update = replace(update, **{name: getattr(update, name) or getattr(current, name) for name in KEPT})
    if current.as_of is not None and update.as_of is not None and update.as_of < current.as_of:
        return None
    if update.status is AlertStatus.RESOLVED and current.is_cured:  # a cured alert may be archived or deleted later
        update = replace(update, end=current.end, note=update.note or current.note)
    held, acknowledged = current.acknowledged if current.status is AlertStatus.FIRING else None, update.acknowledged
    if acknowledged is None:
        acknowledged = held
    elif held is not None and (held.by, held.withdrawn) == (acknowledged.by, acknowledged.withdrawn):
        acknowledged = replace(acknowledged, at=held.at)  # some senders repeat it with every event
    if update.status is AlertStatus.RESOLVED and current.status is AlertStatus.FIRING:
        return _ended(replace(update, acknowledged=acknowledged), current)
    if update.status is not AlertStatus.UPDATED:
        return replace(update, acknowledged=acknowledged)
    return replace(
        update,
        status=current.status,
        starts_at=current.starts_at,
        ends_at=current.ends_at,
        note=current.note,
        end=current.end,
        acknowledged=acknowledged,
    )


def _ended(update: Alert, current: Alert) -> Alert:
    """Return a resolved alert, without the times of an earlier one that its end may carry.

    A later start is kept: the alert fired again in the meantime, without a delivery.
    """
    starts_at = max(current.starts_at, update.starts_at)
    ends_at = update.ends_at if update.ends_at is not None and update.ends_at >= starts_at else None
    return replace(update, starts_at=starts_at, ends_at=ends_at)


def _noted(delivery: AlertDelivery) -> Resolution | None:
    note = next((alert.note for alert in delivery.alerts if alert.note), "")
    return read_resolution(note) if note else None


def _by_status(alerts: Iterable[Alert]) -> tuple[list[Alert], list[Alert]]:
    """Return the firing and the other alerts, each with the earliest first; of the others, those without a cure."""
    ordered = sorted(alerts, key=lambda alert: (alert.starts_at, alert.fingerprint))
    firing = [alert for alert in ordered if alert.status is AlertStatus.FIRING]
    settled = [alert for alert in ordered if alert.status is not AlertStatus.FIRING]
    return firing, sorted(settled, key=lambda alert: alert.is_cured)
