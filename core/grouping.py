"""Which incident explains another one, so that both are shown as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from core.audience import incident_audience, may_see_incident
from core.conversation import Channel
from core.incident import Incident, IncidentState, Severity
from core.rca.dependencies import MAX_DISTANCE, callees, callers, service_of

BEFORE = timedelta(hours=1)  # by which the incident that explains another may have begun earlier
AFTER = timedelta(minutes=5)  # by which it may have begun later: a cause may be noticed after its symptom
MAX_CHAIN = 10  # incidents between a part and the one that leads it

SAME_ALERT = "the same alert"
DEPENDS = "{service} depends on {cause}"


_TAG = re.compile(r"^\s*\[[^\]]{1,40}\]\s*")  # "[FIRING:2]", "[Triggered]": what senders put before a title


def related_services(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The services whose incidents may explain this one, or be explained by it."""
    service = service_of(incident, dependencies)
    if not service:
        return frozenset()
    reached = [service]
    for _ in range(MAX_DISTANCE):
        reached += [caller for each in reached for caller in callers(each, dependencies) if caller not in reached]
        reached = list(dict.fromkeys(reached))
    return frozenset({*callees(service, dependencies), *reached} - {service})


def explanation_by(
    incident: Incident, other: Incident, dependencies: Mapping[str, tuple[str, ...]], channels: Sequence[Channel]
) -> str:
    """Why `incident` is to be shown as a part of `other`; empty if it is not.

    Either it tells of the same alert, later, or its service depends on the other's and not the other way round, and the
    other began within BEFORE and AFTER of it. Never across audiences: whoever sees one of the two may see both.
    """
    if not _may_join(incident, other, channels):
        return ""
    if tells_the_same(incident, other):
        return SAME_ALERT if _order(other) < _order(incident) else ""
    if other.severity is Severity.INFO and incident.severity is not Severity.INFO:
        return ""
    service, cause = service_of(incident, dependencies), service_of(other, dependencies)
    if not service or not cause or cause not in callees(service, dependencies):
        return ""
    if service in callees(cause, dependencies):
        return ""
    later = other.started_at - incident.started_at
    return DEPENDS.format(service=service, cause=cause) if -BEFORE <= later <= AFTER else ""


def tells_the_same(incident: Incident, other: Incident) -> bool:
    """Whether both hold the same alert: by its fingerprint, or from two sources by its service and its name."""
    if not {alert.fingerprint for alert in incident.alerts}.isdisjoint(alert.fingerprint for alert in other.alerts):
        return True
    if incident.source == other.source or not incident.service or incident.service != other.service:
        return False
    return not _names(incident).isdisjoint(_names(other)) and abs(incident.started_at - other.started_at) <= AFTER


def may_absorb(incident: Incident) -> bool:
    """Whether the rules may make it a part of another: nobody works on it or said that it stands for itself."""
    is_free = not incident.taken_by and not incident.hops and not incident.apart_from
    return incident.absorbed is None and incident.state is IncidentState.OPEN and is_free


def leader_of(
    incident: Incident,
    others: Iterable[Incident],
    dependencies: Mapping[str, tuple[str, ...]],
    channels: Sequence[Channel],
) -> tuple[Incident, str] | None:
    """The open incident that explains this one best, and why: the nearest in calls, then the one that began first."""
    distances = callees(service_of(incident, dependencies), dependencies)
    found = [
        (other, reason)
        for other in others
        if other.state is IncidentState.OPEN and (reason := explanation_by(incident, other, dependencies, channels))
    ]
    return min(
        found,
        key=lambda pair: (
            pair[1] != SAME_ALERT,
            distances.get(service_of(pair[0], dependencies), 0),
            _order(pair[0]),
        ),
        default=None,
    )


def _may_join(incident: Incident, other: Incident, channels: Sequence[Channel]) -> bool:
    if incident.id == other.id or other.id in incident.apart_from or incident.id in other.apart_from:
        return False
    return share_an_audience(incident, other, channels)


def share_an_audience(incident: Incident, other: Incident, channels: Sequence[Channel]) -> bool:
    """Whether the message of either may speak of the other."""
    return may_see_incident(incident_audience(incident, channels), other, channels) and may_see_incident(
        incident_audience(other, channels), incident, channels
    )


def _names(incident: Incident) -> set[str]:
    """What an incident and its alerts are called, without the tags that senders put before a title."""
    said = (incident.title, *(text for alert in incident.alerts for text in (alert.name, alert.summary)))
    return {" ".join(_TAG.sub("", text).casefold().split()) for text in said if text}


def _order(incident: Incident) -> tuple[datetime, datetime, str]:
    return incident.started_at, incident.opened_at, incident.id
