"""Fold alert deliveries into an incident, and decide which incidents are shown or suggested as a part of another one.

An incident is merged into another one on evidence: both hold the same alert, its own investigation found its cause in
the service of the other, which fired within minutes of it, or its alerts say that this one does not answer, or both
blame the same change. What arrives within STORM of
another on the same service or node, or on a service that depends on it, begins as a part of it, before it has a message
of its own; it leaves when the cause that is found does not explain it. Otherwise, a dependency is a suggestion: both are
investigated, and a person merges them.

An alert that ended and fires again counts how often it did, and what was known about it the last time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.incidents.thread_notes import read_resolution
from core.model.alert import MAX_KEPT_ALERTS, NAMELESS, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Audience, Channel, Place, Placement
from core.model.findings import Relation, RelationKind
from core.model.incident import (
    Incident,
    IncidentState,
    Recurrence,
)
from core.model.text import name_key
from core.rca.dependencies import MAX_DISTANCE, callees, callers, names_of, service_of, unanswering

REOPEN_WINDOW = timedelta(minutes=30)  # after its resolution, in which an incident is reopened if its group fires
FLAPS = 3  # reopenings within FLAP_WINDOW that make an incident flapping
KEPT_REOPENINGS = 50  # latest ones, by which each firing of an alert is counted once
FLAP_WINDOW = timedelta(hours=2)  # also the reopening window of a flapping incident
KEPT = ("service", "summary", "description", "url", "runbook_url", "paged")  # what an event without them does not erase
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
    note = next((alert.note for alert in delivery.alerts if alert.note), "")
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
        severity=min([incident.severity, *(each.severity for each in delivered.values())], key=[*Severity].index),
        started_at=min([incident.started_at, *(alert.starts_at for alert in delivered.values() if alert in firing)]),
        updated_at=delivery.received_at,
        state=IncidentState.OPEN if is_firing else IncidentState.RESOLVED,
        resolved_at=None if is_firing else delivery.received_at,
        resolution=incident.resolution or (read_resolution(note) if is_cured and note else None),
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
    kept = {name: getattr(update, name) or getattr(current, name) for name in KEPT}
    update = replace(update, name=current.name if update.name == NAMELESS else update.name, **kept)
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
        # Without the times of an earlier one. A later start is kept: it fired again in the meantime, without a delivery.
        starts_at = max(current.starts_at, update.starts_at)
        ends_at = update.ends_at if update.ends_at is not None and update.ends_at >= starts_at else None
        return replace(update, starts_at=starts_at, ends_at=ends_at, acknowledged=acknowledged)
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


def _by_status(alerts: Iterable[Alert]) -> tuple[list[Alert], list[Alert]]:
    """Return the firing and the other alerts, each with the earliest first; of the others, those without a cure."""
    ordered = sorted(alerts, key=lambda alert: (alert.starts_at, alert.fingerprint))
    firing = [alert for alert in ordered if alert.status is AlertStatus.FIRING]
    settled = [alert for alert in ordered if alert.status is not AlertStatus.FIRING]
    return firing, sorted(settled, key=lambda alert: alert.is_cured)


REPEATED_WITHIN = timedelta(hours=1)  # within which other incidents are searched for the same alert
MINUTES = timedelta(minutes=5)  # at most between the starts of two incidents, if one may explain the other
MAX_CHAIN = 10  # incidents above a part
STORM = timedelta(minutes=1)  # at most between the arrivals of incidents of one storm
NODE_LABELS = ("node", "nodename", "host", "hostname")  # labels that name the machine an alert is about

SAME_ALERT = "the same alert"
UNANSWERED = "{service} says that {cause} does not answer, which has an alert of its own"


_TAG = re.compile(r"^\s*\[[^\]]{1,40}\]\s*")  # "[FIRING:2]", "[Triggered]": what senders put before a title


@dataclass(frozen=True, slots=True)
class Profile:
    """An incident, and what decides with which others it is shown.

    `callees` maps the services that its own depends on to the number of calls in between. `causes` are the service in which
    its investigation found the cause, with those that this one depends on; empty while no cause is known. `names` are
    those by which the alerts of others mention it, and `unanswering` the words of its own among which are the names of
    what does not answer.
    """

    incident: Incident
    service: str
    callees: Mapping[str, int]
    causes: Collection[str]
    names: tuple[str, ...]
    unanswering: frozenset[str]
    nodes: frozenset[str]
    audience: Audience

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        return self.incident.started_at, self.incident.opened_at, self.incident.id

    @property
    def blamed(self) -> str:
        """Return the id of the change that its investigation blames; empty if there is none."""
        cause = self.incident.findings.cause
        return cause.change.id if cause is not None and cause.change is not None else ""

    def accuses(self, other: Profile) -> str:
        """Return the name with which its alerts say that what the other is about does not answer; empty if none does."""
        return next((name for name in other.names if name in self.unanswering), "")


def profiles(
    incidents: Sequence[Incident], dependencies: Mapping[str, tuple[str, ...]], channels: Sequence[Channel] = ()
) -> list[Profile]:
    """Return the profiles of incidents. `channels` are the channels as they are now; without one, it is private."""
    services = [service_of(incident, dependencies) for incident in incidents]
    named = {*services, *(cause.service for each in incidents if (cause := each.findings.cause) is not None)}
    called = {service: callees(service, dependencies) if service else {} for service in named}
    return [
        Profile(
            incident,
            service,
            called[service],
            {cause.service, *called[cause.service]} if (cause := incident.findings.cause) is not None else (),
            names_of(incident),
            unanswering(incident),
            frozenset(filter(None, (name_key(incident.labels.get(name, "")) for name in NODE_LABELS))),
            incident.placement.audience(channels),
        )
        for incident, service in zip(incidents, services, strict=True)
    ]


def related_services(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the services whose incidents may explain this one, or be explained by it."""
    service = service_of(incident, dependencies)
    reached = [service]
    for _ in range(MAX_DISTANCE):
        reached = list(dict.fromkeys([*reached, *(up for each in reached for up in callers(each, dependencies))]))
    return frozenset({*callees(service, dependencies), *reached} - {service})


@dataclass(frozen=True, slots=True)
class Merge:
    """An incident that becomes a part of another one. A provisional one leaves if its own cause turns out to be another."""

    part: Incident
    parent: Incident
    reason: str
    provisional: bool = False


def merges(incident: Profile, near: Sequence[Profile], below: Collection[str]) -> list[Merge]:
    """Return the merges to make: of this incident into another one, or else of others into it.

    `below` are the ids of those near that are parts of it, directly or not.
    """
    above = [other for other in near if other.incident.id not in below]
    if may_absorb(incident.incident) and (parent := parent_of(incident, above)):
        return [Merge(incident.incident, parent[0].incident, parent[1])]
    if incident.incident.placement.message is not None:
        return []  # the others are checked again when their own investigations end
    explained = [
        Merge(other.incident, incident.incident, reason)
        for other in near
        if may_absorb(other.incident) and (reason := explanation_by(other, incident))
    ]
    storm = parent_in_storm(incident, above) if not explained and is_free(incident.incident) else None
    return explained if storm is None else [storm]


def explanation_by(one: Profile, other: Profile) -> str:
    """Return the reason to show the first as a part of `other`; empty if there is none.

    Either `other` reported the same alert earlier, or both began within MINUTES, and the alerts of the first say that the
    service of `other` does not answer, or it depends on it and its investigation found the cause there. Empty before the
    triage of a critical incident, and if not everybody who sees one of the two may see both.
    """
    incident, cause = one.incident, one.incident.findings.cause
    is_untouched = incident.findings.owner is None and incident.findings.explanation is None
    if not _may_join(one, other) or (is_untouched and incident.severity is Severity.CRITICAL):
        return ""
    if tells_the_same(incident, other.incident):
        return SAME_ALERT if other.order < one.order else ""
    accused = "" if other.accuses(one) else one.accuses(other)
    if accused and (cause is None or cause.service == accused) and _may_explain(other, one):
        return UNANSWERED.format(service=incident.service or incident.title, cause=accused)
    if cause is None:
        return ""
    if cause.change is not None and cause.change.id == other.blamed and other.order < one.order:
        is_near = abs(other.incident.started_at - incident.started_at) <= MINUTES
        return f"both are blamed on {cause.change.name}" if is_near else ""
    is_there = cause.service == other.service and _depends(one, other)
    return f"{incident.service} depends on {cause.service}, where its cause was found" if is_there else ""


def is_explained_by(part: Profile, whole: Profile) -> bool:
    """Return whether the cause of `whole` may explain `part`: it lies in a service that the part depends on, or its change
    touched the part's service. True while no cause is known.
    """
    cause = whole.incident.findings.cause
    if cause is None or not cause.service:
        return True
    causes = {cause.service, whole.service, *(cause.change.services if cause.change is not None else ())}
    needed = {part.service, *part.callees, *part.unanswering}
    return bool(part.nodes & whole.nodes or part.accuses(whole) or causes & needed)


def is_independent(part: Profile, whole: Profile) -> bool:
    """Return whether a provisional part has another cause than `whole`, or one that `whole` cannot have.

    Without a cause of its own, it is independent of a cause that does not explain it.
    """
    own, its = part.incident.findings.cause, whole.incident.findings.cause
    if own is None:
        return not is_explained_by(part, whole)
    if its is None:
        return own.service not in {whole.service, *whole.callees, *whole.unanswering}
    is_same_change = own.change is not None and own.change.id == whole.blamed
    return own.service != its.service and not is_same_change


def suggested_parent(incident: Profile, others: Iterable[Profile]) -> Relation | None:
    """Return the open incident that this one may be part of because it depends on it: the nearest in the call graph.

    None once its own investigation found the cause elsewhere.
    """
    parents = [
        other
        for other in others
        if other.incident.state is IncidentState.OPEN
        and _may_join(incident, other)
        and _depends(incident, other)
        and (not incident.causes or other.service in incident.causes)
    ]
    if not parents:
        return None
    best = min(parents, key=lambda other: (incident.callees[other.service], other.order))
    return Relation(
        RelationKind.MAY_BE_PART_OF,
        best.incident.id,
        best.incident.title,
        (f"{incident.service} depends on {best.service}",),
        readers=tuple(sorted(best.audience.disclosed_to)),
    )


def _depends(one: Profile, other: Profile) -> bool:
    """Return whether the first's service depends on the other's, not vice versa, and both began within MINUTES."""
    is_one_way = other.service in one.callees and one.service not in other.callees
    return bool(one.service) and is_one_way and _may_explain(other, one)


def _may_explain(other: Profile, one: Profile) -> bool:
    """Return whether both began within MINUTES, and no information is to explain what is more than that."""
    is_less = other.incident.severity is Severity.INFO and one.incident.severity is not Severity.INFO
    return not is_less and abs(other.incident.started_at - one.incident.started_at) <= MINUTES


def tells_the_same(incident: Incident, other: Incident) -> bool:
    """Return whether both hold the same alert: by fingerprint or, from two sources, by service and name."""
    if not {alert.fingerprint for alert in incident.alerts}.isdisjoint(alert.fingerprint for alert in other.alerts):
        return True
    is_near = incident.source != other.source and abs(incident.started_at - other.started_at) <= MINUTES
    is_on_one = incident.service == other.service != ""
    return is_near and is_on_one and not _names(incident).isdisjoint(_names(other))


def may_absorb(incident: Incident) -> bool:
    """Return whether it may be merged automatically: nobody works on it, reassigned it or separated it."""
    return is_free(incident) and incident.relation(RelationKind.APART_FROM) is None


def is_free(incident: Incident) -> bool:
    """Return whether it is open and no part of another one, and nobody works on it or reassigned it."""
    is_touched = incident.taken_by or incident.hops
    return incident.part_of is None and incident.state is IncidentState.OPEN and not is_touched


def parent_of(incident: Profile, others: Iterable[Profile]) -> tuple[Profile, str] | None:
    """Return the open incident that best explains this one (same alert first, then earliest), and the reason."""
    parents = [
        (other, reason)
        for other in others
        if other.incident.state is IncidentState.OPEN and (reason := explanation_by(incident, other))
    ]
    return min(parents, key=lambda pair: (pair[1] != SAME_ALERT, pair[0].order), default=None)


def parent_in_storm(incident: Profile, others: Iterable[Profile]) -> Merge | None:
    """Return the merge into the incident in whose message one without a message begins because both arrived within STORM.

    That is the worst, then the earliest of those that it is linked with, directly or by others between them. None if it is
    that itself, or if a cause is known that does not explain it. The other is shown in all of its places.
    """
    if incident.incident.placement.message is not None:
        return None
    apart = [other for other in others if _is_of_storm(incident, other)]
    reasons, linked, frontier = dict[str, str](), list[Profile](), [incident]
    while frontier:
        each = frontier.pop(0)
        neighbours = [(other, reason) for other in apart if (reason := _shared(each, other))]
        for other, reason in neighbours:
            reasons[other.incident.id] = reasons.get(each.incident.id, reason)
            apart.remove(other)
            linked.append(other)
            frontier.append(other)
    may_lead = [other for other in linked if is_explained_by(incident, other)]
    severities = [*Severity]
    leader = min(  # the worst, then those with a message, then the earliest
        [incident, *may_lead],
        key=lambda each: (
            severities.index(each.incident.severity),
            each.incident.placement.message is None,
            each.incident.opened_at,
            each.incident.id,
        ),
    )
    if leader is incident:
        return None
    is_provisional = not explanation_by(incident, leader)
    return Merge(incident.incident, leader.incident, reasons[leader.incident.id], is_provisional)


def _shared(one: Profile, other: Profile) -> str:
    """Return what two incidents share: the service, the node, or a dependency in either direction; empty for nothing."""
    if one.service and one.service == other.service:
        return f"also on {one.service}, within a minute"
    if node := min(one.nodes & other.nodes, default=""):
        return f"also on {node}, within a minute"
    for caller, callee in ((one, other), (other, one)):
        if caller.service and callee.service in caller.callees:
            return f"{caller.service} depends on {callee.service}, and both fired within a minute"
        if accused := caller.accuses(callee):
            return UNANSWERED.format(service=caller.service or caller.incident.title, cause=accused)
    return ""


def _is_of_storm(one: Profile, other: Profile) -> bool:
    return (
        other.incident.state is IncidentState.OPEN
        and abs(one.incident.opened_at - other.incident.opened_at) <= STORM
        and set(one.incident.placement.places) <= set(other.incident.placement.places)
        and _may_join(one, other)
    )


def _may_join(one: Profile, other: Profile) -> bool:
    """Return whether nobody separated the two, and the message of each may mention the other."""
    incident, beside = one.incident, other.incident
    apart = incident.relation(RelationKind.APART_FROM, beside.id) or beside.relation(
        RelationKind.APART_FROM, incident.id
    )
    return incident.id != beside.id and apart is None and one.audience.shares_with(other.audience)


def _names(incident: Incident) -> set[str]:
    """Return the names of an incident and its alerts, without the tags that senders put before a title."""
    texts = (incident.title, *(text for alert in incident.alerts for text in (alert.name, alert.summary)))
    return {name_key(_TAG.sub("", text)) for text in texts if text}


COUNTED = timedelta(days=30)  # at most between an end and the next firing that is counted as the same
JOINED = timedelta(days=1)  # after an end, in which the next incident joins the old thread, unless set otherwise
WEEK = timedelta(days=6)  # in which a weekday alone names a day
_WORDS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def recurring(incident: Incident, last: Incident | None) -> Incident:
    """Return a new incident that counts the last one of its alert group, if that ended no longer ago than COUNTED."""
    ended = last and last.resolved_at
    if last is None or ended is None or incident.opened_at - ended > COUNTED:
        return incident
    before = last.recurrence or Recurrence("", 1, last.started_at)
    return replace(incident, recurrence=Recurrence(last.id, before.count + 1, before.since))


def format_count(incident: Incident) -> str:
    """Return “third time since Monday”; empty for the first time."""
    again = incident.recurrence
    if again is None:
        return ""
    times = f"{_WORDS[again.count]} time" if again.count < len(_WORDS) else f"{again.count} times"
    day = f"{again.since:%A}" if incident.opened_at - again.since < WEEK else f"{again.since.day} {again.since:%b}"
    return f"{times} today" if again.since.date() == incident.opened_at.date() else f"{times} since {day}"
