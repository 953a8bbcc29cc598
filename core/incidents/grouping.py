"""Decide which incidents are shown as a part of another one, and which are only suggested as a part.

An incident is merged into another one only on evidence: both hold the same alert, or its own investigation found its
cause in the service of the other, which fired within minutes of it. A mere dependency is a suggestion: both are
investigated, and a person merges them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from core.model.conversation import Channel
from core.model.incident import Incident, IncidentState, Severity, SuggestedParent, incident_audience, may_see_incident
from core.rca.dependencies import MAX_DISTANCE, callees, callers, service_of

REPEATED_WITHIN = timedelta(hours=1)  # within which other incidents are searched for the same alert
MINUTES = timedelta(minutes=5)  # at most between the starts of two incidents, if one may explain the other
MAX_CHAIN = 10  # incidents above a part

SAME_ALERT = "the same alert"
DEPENDS = "{service} depends on {cause}"
CAUSED = "{service} depends on {cause}, where its cause was found"


_TAG = re.compile(r"^\s*\[[^\]]{1,40}\]\s*")  # "[FIRING:2]", "[Triggered]": what senders put before a title


def related_services(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the services whose incidents may explain this one, or be explained by it."""
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
    """Return the reason to show `incident` as a part of `other`; empty if there is none.

    Either `other` reported the same alert earlier, or `incident` depends on the service of `other`, began within
    MINUTES of it, and its investigation found the cause in that service. Empty before the triage of a critical
    incident, and if not everybody who sees one of the two may see both.
    """
    is_untouched = incident.owner is None and incident.explanation is None
    if not _may_join(incident, other, channels) or (is_untouched and incident.severity is Severity.CRITICAL):
        return ""
    if tells_the_same(incident, other):
        return SAME_ALERT if _order(other) < _order(incident) else ""
    cause = incident.explanation.cause if incident.explanation is not None else None
    if cause is None or cause.service != service_of(other, dependencies):
        return ""
    return (
        CAUSED.format(service=incident.service, cause=cause.service) if _depends(incident, other, dependencies) else ""
    )


def suggested_parent(
    incident: Incident,
    others: Iterable[Incident],
    dependencies: Mapping[str, tuple[str, ...]],
    channels: Sequence[Channel],
) -> SuggestedParent | None:
    """Return the open incident that this one may be part of because it depends on it: the nearest in the call graph.

    None once its own investigation found the cause elsewhere.
    """
    distances = callees(service_of(incident, dependencies), dependencies)
    cause = incident.explanation.cause if incident.explanation is not None else None
    found = [
        other
        for other in others
        if other.state is IncidentState.OPEN
        and _may_join(incident, other, channels)
        and _depends(incident, other, dependencies)
        and (cause is None or _leads_to(cause.service, service_of(other, dependencies), dependencies))
    ]
    if not found:
        return None
    best = min(found, key=lambda other: (distances[service_of(other, dependencies)], _order(other)))
    reason = DEPENDS.format(service=service_of(incident, dependencies), cause=service_of(best, dependencies))
    return SuggestedParent(best.id, best.title, reason)


def _depends(incident: Incident, other: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether an incident's service depends on the other's, not vice versa, and both began within MINUTES."""
    if other.severity is Severity.INFO and incident.severity is not Severity.INFO:
        return False
    service, cause = service_of(incident, dependencies), service_of(other, dependencies)
    if not service or cause not in callees(service, dependencies) or service in callees(cause, dependencies):
        return False
    return abs(other.started_at - incident.started_at) <= MINUTES


def _leads_to(service: str, other: str, dependencies: Mapping[str, tuple[str, ...]]) -> bool:
    return service == other or other in callees(service, dependencies)


def tells_the_same(incident: Incident, other: Incident) -> bool:
    """Return whether both hold the same alert: by fingerprint or, from two sources, by service and name."""
    if not {alert.fingerprint for alert in incident.alerts}.isdisjoint(alert.fingerprint for alert in other.alerts):
        return True
    if incident.source == other.source or not incident.service or incident.service != other.service:
        return False
    return not _names(incident).isdisjoint(_names(other)) and abs(incident.started_at - other.started_at) <= MINUTES


def may_absorb(incident: Incident) -> bool:
    """Return whether it may be merged automatically: nobody works on it, reassigned it or separated it."""
    is_free = not incident.taken_by and not incident.hops and not incident.apart_from
    return incident.absorbed is None and incident.state is IncidentState.OPEN and is_free


def parent_of(
    incident: Incident,
    others: Iterable[Incident],
    dependencies: Mapping[str, tuple[str, ...]],
    channels: Sequence[Channel],
) -> tuple[Incident, str] | None:
    """Return the open incident that best explains this one (same alert first, then earliest), and the reason."""
    found = [
        (other, reason)
        for other in others
        if other.state is IncidentState.OPEN and (reason := explanation_by(incident, other, dependencies, channels))
    ]
    return min(found, key=lambda pair: (pair[1] != SAME_ALERT, _order(pair[0])), default=None)


def _may_join(incident: Incident, other: Incident, channels: Sequence[Channel]) -> bool:
    if incident.id == other.id or other.id in incident.apart_from or incident.id in other.apart_from:
        return False
    return share_an_audience(incident, other, channels)


def share_an_audience(incident: Incident, other: Incident, channels: Sequence[Channel]) -> bool:
    """Return whether the message of each may mention the other."""
    return may_see_incident(incident_audience(incident, channels), other, channels) and may_see_incident(
        incident_audience(other, channels), incident, channels
    )


def _names(incident: Incident) -> set[str]:
    """Return the names of an incident and its alerts, without the tags that senders put before a title."""
    said = (incident.title, *(text for alert in incident.alerts for text in (alert.name, alert.summary)))
    return {" ".join(_TAG.sub("", text).casefold().split()) for text in said if text}


def _order(incident: Incident) -> tuple[datetime, datetime, str]:
    return incident.started_at, incident.opened_at, incident.id
