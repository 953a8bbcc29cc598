"""Alerts, and the incidents that they are folded into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from core.confidence.badge import Badge
from core.conversation import PUBLIC, MessageReference, Place
from core.rca.trajectory import Responsibility, Trajectory

MAX_KEPT_ALERTS = 50  # alerts of one incident kept in full; the rest are counted


class AlertStatus(StrEnum):
    FIRING = "firing"
    RESOLVED = "resolved"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as its monitoring system sent it, in our terms. All texts are untrusted."""

    fingerprint: str
    name: str
    status: AlertStatus
    severity: Severity
    starts_at: datetime
    service: str = ""
    summary: str = ""
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    ends_at: datetime | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class AlertDelivery:
    """One webhook request: alerts that belong together by `group_key`.

    `key` is the idempotency key: a request that says the same again has the same key. `omitted` counts the alerts of
    the group that the request names but `alerts` does not hold.
    """

    key: str
    source: str
    group_key: str
    alerts: tuple[Alert, ...]
    received_at: datetime
    omitted: int = 0


class IncidentState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class TeamScore:
    """A candidate owner and its share of the votes, in [0, 1]; the shares of all candidates sum to at most 1."""

    team_id: str
    team_name: str
    score: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vote:
    """What the manager of team `voter` said in one round: whose incident it is, or None if it abstained, and why."""

    round: int
    voter: str
    choice: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class OwnerProposal:
    """Who probably owns the incident. `candidates` are best first and begin with the owner.

    `owner` is None when nobody can be named: then a person is asked, and the candidates say who is nearest. `votes` are
    those of the negotiation, in its order.
    """

    owner: TeamScore | None
    candidates: tuple[TeamScore, ...]
    on_call: tuple[str, ...]
    badge: Badge
    prediction_id: str
    votes: tuple[Vote, ...] = ()


class EvidenceKind(StrEnum):
    LOG = "log"
    METRIC = "metric"
    CHANGE = "change"
    PAST_INCIDENT = "past incident"
    TOPOLOGY = "topology"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One quoted line, and where it stands. `quote` is verbatim and untrusted."""

    kind: EvidenceKind
    source: str
    quote: str
    at: datetime | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause. `score` in [0, 1] ranks it among its rivals and is no probability."""

    cause: str
    service: str
    score: float
    evidence: tuple[Evidence, ...]
    disproof: str
    next_check: str
    responsibility: Responsibility | None = None  # None where nothing tells


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """A past incident that resembles this one; `similarity` in [0, 1]."""

    id: str
    title: str
    owner: str
    root_cause: str
    fix: str
    similarity: float
    url: str = ""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why it probably broke: hypotheses best first, or none and what was ruled out.

    `badge` and `prediction_id` belong to the first hypothesis; both are None when no culprit was found. `trajectory` is
    what a language model did to find it out, None without one; `engine` is `evidence`, or the model whose finding counts.
    """

    hypotheses: tuple[Hypothesis, ...]
    ruled_out: tuple[str, ...]
    similar: tuple[SimilarIncident, ...]
    timeline: tuple[TimelineEntry, ...]
    unavailable: tuple[str, ...] = ()  # tools that could not be read
    badge: Badge | None = None
    prediction_id: str | None = None
    engine: str = "evidence"
    trajectory: Trajectory | None = None

    @property
    def cause(self) -> Hypothesis | None:
        return self.hypotheses[0] if self.hypotheses else None


class Stage(StrEnum):
    """How far the work on an incident has come; each stage is shown in its message."""

    TRIAGING = "finding the owner"
    EXPLAINING = "looking for the cause"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens, as far as it is known. Stored as a whole; `revision` grows by one with every change.

    `alerts` are the kept ones, the firing ones first. `also_firing` holds the fingerprints, in order, of alerts that
    fire as well and are too many to be kept. `alert_count` counts distinct alerts that ever belonged to it, and of these
    `unseen_count` those that a delivery only counted. `delivery_count` is the number of requests folded into it,
    `severity` the worst that any of its alerts ever had. `progress` says what is being done at this stage, empty if that
    says it all.
    """

    id: str
    source: str
    group_key: str
    title: str
    severity: Severity
    service: str
    labels: dict[str, str]
    alerts: tuple[Alert, ...]
    alert_count: int
    delivery_count: int
    started_at: datetime
    opened_at: datetime
    updated_at: datetime
    place: Place
    state: IncidentState = IncidentState.OPEN
    stage: Stage = Stage.TRIAGING
    progress: str = ""
    resolved_at: datetime | None = None
    message: MessageReference | None = None
    taken_by: str = ""
    owner: OwnerProposal | None = None
    explanation: Explanation | None = None
    also_firing: tuple[str, ...] = ()
    unseen_count: int = 0
    revision: int = 1

    @property
    def firing_count(self) -> int:
        return sum(alert.status is AlertStatus.FIRING for alert in self.alerts) + len(self.also_firing)

    @property
    def description(self) -> str:
        """All that the alerts say, for triage and for the search for similar incidents."""
        texts = [self.title, *(text for alert in self.alerts[:5] for text in (alert.summary, alert.description))]
        return "\n".join(dict.fromkeys(text for text in texts if text))


def open_from(delivery: AlertDelivery, incident_id: str, place: Place) -> Incident:
    """The incident that a delivery opens; it is named after the first of its alerts that fire (at least one)."""
    firing = (alert for alert in delivery.alerts if alert.status is AlertStatus.FIRING)
    first = min(firing, key=lambda alert: (alert.starts_at, alert.fingerprint))
    return fold(
        Incident(
            id=incident_id,
            source=delivery.source,
            group_key=delivery.group_key,
            title=first.summary or first.name,
            severity=first.severity,
            service=first.service,
            labels=first.labels,
            alerts=(),
            alert_count=0,
            delivery_count=0,
            started_at=first.starts_at,
            opened_at=delivery.received_at,
            updated_at=delivery.received_at,
            place=place,
            revision=0,
        ),
        delivery,
    )


def fold(incident: Incident, delivery: AlertDelivery) -> Incident:
    """The incident with the alerts of one more delivery in it; resolved once none of its alerts fires any more."""
    delivered = {alert.fingerprint: alert for alert in delivery.alerts}
    known = {alert.fingerprint: alert for alert in incident.alerts}
    new = delivered.keys() - known.keys() - set(incident.also_firing)
    seen_count = incident.alert_count - incident.unseen_count + len(new)
    alert_count = max(incident.alert_count, seen_count, len(delivered) + delivery.omitted)
    firing, settled = _by_status((known | delivered).values())
    also_firing = set(incident.also_firing) - delivered.keys() | {a.fingerprint for a in firing[MAX_KEPT_ALERTS:]}
    is_firing = bool(firing or also_firing)
    return replace(
        incident,
        alerts=tuple((firing + settled)[:MAX_KEPT_ALERTS]),
        also_firing=tuple(sorted(also_firing)),
        alert_count=alert_count,
        unseen_count=alert_count - seen_count,
        delivery_count=incident.delivery_count + 1,
        severity=min((incident.severity, *(alert.severity for alert in delivery.alerts)), key=list(Severity).index),
        started_at=min(incident.started_at, *(alert.starts_at for alert in delivery.alerts)),
        updated_at=delivery.received_at,
        state=IncidentState.OPEN if is_firing else IncidentState.RESOLVED,
        resolved_at=None if is_firing else delivery.received_at,
        revision=incident.revision + 1,
    )


def _by_status(alerts: Iterable[Alert]) -> tuple[list[Alert], list[Alert]]:
    """The firing and the resolved ones, each the earliest first."""
    ordered = sorted(alerts, key=lambda alert: (alert.starts_at, alert.fingerprint))
    firing = [alert for alert in ordered if alert.status is AlertStatus.FIRING]
    return firing, [alert for alert in ordered if alert.status is not AlertStatus.FIRING]


@dataclass(frozen=True, slots=True)
class PastIncident:
    """An incident that was closed, with what is known of it: the history that triage and root cause learn from.

    `readers` are the reader names that may see it (see `Audience`).
    """

    id: str
    title: str
    description: str
    service: str
    severity: Severity
    started_at: datetime
    owner: str
    environment: str = ""
    resolved_at: datetime | None = None
    reassignments: tuple[str, ...] = ()
    root_cause: str = ""
    fix: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})
