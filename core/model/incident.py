"""Alerts, and the incidents that they are folded into."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from core.answering.answer import Citation
from core.model.badge import Badge
from core.model.conversation import PUBLIC, MessageReference, Place
from core.model.correlation import current_correlation
from core.model.trajectory import Responsibility, Trajectory

MAX_KEPT_ALERTS = 50  # alerts of one incident kept in full; the rest are counted


class AlertStatus(StrEnum):
    """`UPDATED` is said by a delivery alone: something else of the alert is new, and it fires or not as before."""

    FIRING = "firing"
    RESOLVED = "resolved"
    UPDATED = "updated"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The note on the end of an incident; a field that it lacks is empty. Untrusted text."""

    root_cause: str = ""
    fix: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Somebody told the monitoring system that they look at an alert, or (`withdrawn`) that they no longer do.

    `by` is untrusted, and empty where the monitoring system does not say who.
    """

    by: str
    at: datetime
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as its monitoring system sent it, in our terms. All texts are untrusted.

    `note` is what it says of how it ended (see `Resolution`), empty while it fires. `acknowledged` is None where nothing
    is said of it. `as_of` is when all this was so by the sender's clock, None where the sender does not say: what is
    older than what is known is not believed. `url` leads to the alert, `runbook_url` to the page that it names for
    whoever handles it; both are web addresses or empty.
    """

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
    runbook_url: str = ""
    note: str = ""
    acknowledged: Acknowledgement | None = None
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertDelivery:
    """One webhook request: at least one alert, and all belong together by `group_key`.

    `key` is the idempotency key: a request that says the same again has the same key. It counts until the incident is
    resolved, because an alert that fires anew may be told in the same words; with `one_event`, it names one event of the
    sender and counts for good. `omitted` counts the alerts of the group that the
    request names but `alerts` does not hold. `replicated`: the sender may run in replicas, of which one can tell late
    what another has told to be over. `correlation` is that of the request, whoever stores it.
    """

    key: str
    source: str
    group_key: str
    alerts: tuple[Alert, ...]
    received_at: datetime
    omitted: int = 0
    replicated: bool = False
    one_event: bool = False
    correlation: str = field(default_factory=current_correlation, compare=False)

    @property
    def fires(self) -> bool:
        """Return whether at least one of its alerts fires."""
        return any(alert.status is AlertStatus.FIRING for alert in self.alerts)

    @property
    def first_firing(self) -> Alert:
        """The alert that an incident opened by it is named after: of those that fire (at least one) the earliest."""
        firing = (alert for alert in self.alerts if alert.status is AlertStatus.FIRING)
        return min(firing, key=lambda alert: (alert.starts_at, alert.fingerprint))


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
    """The vote of the manager of team `voter` in one round: the owner, None if it abstained, and the reason.

    `hop` counts how often people had sent the incident on before: after each, the rounds begin anew. `voter_name` is what
    the team was called, empty where it was not kept.
    """

    round: int
    voter: str
    choice: str | None
    reason: str
    hop: int = 0
    voter_name: str = ""


@dataclass(frozen=True, slots=True)
class AskedTeam:
    """A team that is asked if an incident is its own, and who of it is on call.

    `on_call_unknown` names the system that could not say who, empty if it could. All texts are untrusted.
    """

    team_id: str
    team_name: str
    on_call: tuple[str, ...] = ()
    on_call_unknown: str = ""


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """A past incident that resembles this one; `similarity` in [0, 1]. All texts are untrusted.

    `same_cause`: what is found to be the cause now is what caused the past incident, so that its fix may help again.
    """

    id: str
    title: str
    owner: str
    root_cause: str
    fix: str
    similarity: float
    url: str = ""
    same_cause: bool = False


@dataclass(frozen=True, slots=True)
class OwnerProposal:
    """The probable owner of the incident. `candidates` are best first and begin with the owner.

    `owner` is None when nobody can be named: then the teams in `asked` are asked, the best two candidates that anything
    speaks for. `votes` are those of the negotiation, in its order, after those before earlier hops. `note` says what went
    otherwise than planned, empty if nothing did. `on_call_unknown` names the system that could not say who is on call,
    empty if it could. `precedents` are the past incidents that decided it, nearest first.
    """

    owner: TeamScore | None
    candidates: tuple[TeamScore, ...]
    on_call: tuple[str, ...]
    badge: Badge
    prediction_id: str
    votes: tuple[Vote, ...] = ()
    note: str = ""
    on_call_unknown: str = ""
    asked: tuple[AskedTeam, ...] = ()
    precedents: tuple[SimilarIncident, ...] = ()

    @property
    def not_asked(self) -> tuple[TeamScore, ...]:
        """The candidates that are not asked."""
        asked = {team.team_id for team in self.asked}
        return tuple(candidate for candidate in self.candidates if candidate.team_id not in asked)


@dataclass(frozen=True, slots=True)
class SeveritySuggestion:
    """How severe it probably is. `evidence` says why, in words; it names past incidents and is untrusted."""

    severity: Severity
    evidence: tuple[str, ...]
    badge: Badge
    prediction_id: str


@dataclass(frozen=True, slots=True)
class DuplicateSuggestion:
    """The earlier incident that it is probably another sign of. `evidence` says why, in words. All texts are untrusted."""

    incident_id: str
    title: str
    evidence: tuple[str, ...]
    badge: Badge
    prediction_id: str


@dataclass(frozen=True, slots=True)
class Hop:
    """Somebody said that an incident is not team `turned_away`'s, empty if nobody's name stood there, and why.

    `given_to` is the team that it is instead, empty where the person does not know. Names and reason are untrusted.
    """

    turned_away: str
    given_to: str
    person: str
    reason: str
    at: datetime


class EvidenceKind(StrEnum):
    LOG = "log"
    METRIC = "metric"
    TRACE = "trace"  # of incidents that were investigated before traces were found to explain nothing more
    CHANGE = "change"
    PAST_INCIDENT = "past incident"
    TOPOLOGY = "topology"
    NOTE = "note"  # of a person in the thread


@dataclass(frozen=True, slots=True)
class Evidence:
    """One quoted line, and where it stands. `quote` is verbatim and untrusted."""

    kind: EvidenceKind
    source: str
    quote: str
    at: datetime | None = None
    url: str = ""


class Origin(StrEnum):
    """The kind of a cause: a change of ours, or something else."""

    CHANGE = "change"
    EXTERNAL = "external"  # an outside system failed, or something of it expired or was used up
    LOAD = "load"  # more requests than usual
    DATA = "data"  # one record, tenant or message
    PLATFORM = "platform"  # a node, a disk, a store, a network
    SERVICE = "service"  # trouble that arises in a service, for a reason that does not show
    BUILD = "build"
    OTHER = "other"  # what a language model or a tool said


@dataclass(frozen=True, slots=True)
class BlamedChange:
    """The change that a cause blames, in parts. All texts are untrusted.

    `at` is when it came into force. `deploys` are the ids of the deployments that shipped it, `files` and `moved` what
    of its paths and diff lines the signs speak of, `shared` the words that it has in common with the signs.
    """

    id: str
    kind: str
    title: str
    author: str
    at: datetime
    services: tuple[str, ...]
    deploys: tuple[str, ...] = ()
    url: str = ""
    files: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Followed:
    """A sign that followed a cause: in which metric, log message or operation (`subject`) of which service, since when.

    `what` says it in words.
    """

    service: str
    kind: EvidenceKind
    subject: str
    since: datetime
    what: str


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause. `score` in [0, 1] ranks it among its rivals and is no probability.

    `evidence` speaks for it, `contradicting` against it. `change` is None for what is no change of ours: then `origin`
    says what it is, and `subject` which outside host, record or node is to blame. `followed` are the signs of it, the
    most telling first; `seconds_to_first_sign` is how long after the change trouble showed.
    """

    cause: str
    service: str
    score: float
    evidence: tuple[Evidence, ...]
    disproof: str
    next_check: str
    responsibility: Responsibility | None = None  # None where nothing tells
    contradicting: tuple[Evidence, ...] = ()
    origin: Origin = Origin.OTHER
    change: BlamedChange | None = None
    subject: str = ""
    followed: tuple[Followed, ...] = ()
    seconds_to_first_sign: float | None = None

    @property
    def short(self) -> str:
        """The cause in few words: the change, or the first part of what is said of it."""
        if self.change is not None:
            return f"{self.change.kind} {self.change.id} ({self.change.title.rstrip('.')})"
        return self.cause.rstrip(".")


class GapReason(StrEnum):
    """Why a tool told nothing of a part of what was asked."""

    MISSING = "not set up"
    REFUSED = "access refused"
    TIMED_OUT = "timed out"
    FAILED = "failed"
    OUT_OF_WINDOW = "no data from that time"

    @property
    def is_failure(self) -> bool:
        """Return whether a tool that is there could not be asked, so that it may be able to answer later."""
        return self in (GapReason.REFUSED, GapReason.TIMED_OUT, GapReason.FAILED)


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of the investigation that could not be done: `tool` was not read, or not of all that was asked.

    `detail` says more, empty if there is nothing more to say. All texts are untrusted.
    """

    tool: str
    reason: GapReason
    detail: str = ""

    @property
    def text(self) -> str:
        """Return “loki: timed out (no answer within 8 s)”."""
        return f"{self.tool}: {self.reason}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Runbook:
    """The runbook that an alert names by its address or its name.

    `url` is the address that the alert gives, empty if it gives none. `citation` is the section of the indexed page
    that says what to do, None where the page is not indexed: then there is only the link. `next_action` is quoted from
    that section, and so is `command`, empty where the section has none. All texts are untrusted.
    """

    url: str
    citation: Citation | None = None
    next_action: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class SuggestedParent:
    """An open incident that another may be a part of; both are looked into until a person joins them.

    `reason` says why, in words. All texts are untrusted.
    """

    incident_id: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class ThreadNote:
    """A note in the incident's thread that bears on its cause. All texts are untrusted."""

    person: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    text: str


TIED = 0.6  # of the first cause's score, from which the second one is about as likely


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why it probably broke: hypotheses best first, or none and what was ruled out.

    `badge` and `prediction_id` belong to the first hypothesis; both are None when no culprit was found. `trajectory` is
    what a language model did to find it out, None without one; `engine` is `evidence`, or the model whose finding counts.
    `rechecked_after` is the note of a person that it takes into account, None if nobody wrote one.
    """

    hypotheses: tuple[Hypothesis, ...]
    ruled_out: tuple[str, ...]
    similar: tuple[SimilarIncident, ...]
    timeline: tuple[TimelineEntry, ...]
    gaps: tuple[Gap, ...] = ()  # what could not be read
    badge: Badge | None = None
    prediction_id: str | None = None
    engine: str = "evidence"
    trajectory: Trajectory | None = None
    rechecked_after: ThreadNote | None = None
    first_failing: str = ""  # the service in which the trouble first showed; empty if none did

    @property
    def is_tied(self) -> bool:
        """Return whether the second cause is about as likely as the first, so that both are to be told."""
        return len(self.hypotheses) > 1 and self.hypotheses[1].score >= TIED * self.hypotheses[0].score

    @property
    def told(self) -> str:
        """The first cause in words, with the second one where that is about as likely; empty without a cause."""
        if not self.hypotheses:
            return ""
        first = self.hypotheses[0].cause
        return f"{first} Or, about as likely: {self.hypotheses[1].short}." if self.is_tied else first

    @property
    def cause(self) -> Hypothesis | None:
        return self.hypotheses[0] if self.hypotheses else None


@dataclass(frozen=True, slots=True)
class Absorption:
    """An incident is shown as a part of another one, its `leader` (an id), and not looked into for itself.

    `reason` says why, `person` who said so: empty for the rules of `core.incidents.grouping`. Both are untrusted.
    """

    leader: str
    reason: str
    at: datetime
    person: str = ""


@dataclass(frozen=True, slots=True)
class Silenced:
    """Why an incident is recorded and not posted: it was `silenced_by` a maintenance window or a monitoring system.

    `until` is when that ends, as far as is known. `reason` is untrusted.
    """

    silenced_by: str
    reason: str
    until: datetime


class Stage(StrEnum):
    """How far the work on an incident has come; each stage is shown in its message."""

    TRIAGING = "finding the owner"
    EXPLAINING = "looking for the cause"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident, as far as it is known. Stored as a whole; `revision` grows by one with every change.

    `alerts` are the kept ones, the firing ones first. `also_firing` holds the fingerprints, in order, of alerts that
    fire as well and are too many to be kept. `alert_count` counts distinct alerts that ever belonged to it, and of these
    `unseen_count` those that a delivery only counted. `delivery_count` is the number of requests folded into it,
    `reopened_count` how often it fired again after it was resolved, `severity` the worst that any of its alerts ever
    had, unless a person said how severe it is (`severity_by`). `progress` says what is being done at this stage, empty
    if that says it all. `duplicate_of` is the id of the incident that a person confirmed it is another sign of.
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
    hops: tuple[Hop, ...] = ()  # from team to team, oldest first
    resolution: Resolution | None = None  # what somebody noted when it ended
    reopened_count: int = 0
    also_in: tuple[Place, ...] = ()  # beside `place`, where its thread is led: the same message stands there
    reopenings: tuple[datetime, ...] = ()  # the latest times that it fired again, oldest first
    flapping: bool = False  # it fires and resolves again and again (see `core.incidents.folding`)
    absorbed: Absorption | None = None
    apart_from: tuple[str, ...] = ()  # the ids of incidents that people said it does not belong to
    silenced: Silenced | None = None
    cut_short: str = ""  # why the analysis ended before it was complete, empty if it did not
    suggested_severity: SeveritySuggestion | None = None
    severity_by: str = ""
    suggested_duplicate: DuplicateSuggestion | None = None
    duplicate_of: str = ""
    suggested_parent: SuggestedParent | None = None
    runbook: Runbook | None = None
    notes: tuple[ThreadNote, ...] = ()  # oldest first
    revision: int = 1

    @property
    def firing_count(self) -> int:
        return sum(alert.status is AlertStatus.FIRING for alert in self.alerts) + len(self.also_firing)

    @property
    def acknowledged(self) -> Acknowledgement | None:
        """The latest acknowledgement, if all alerts that fire (once none does: all) are acknowledged."""
        firing = [alert for alert in self.alerts if alert.status is AlertStatus.FIRING]
        given = [alert.acknowledged for alert in firing or self.alerts]
        standing = [each for each in given if each is not None and not each.withdrawn]
        if self.also_firing or len(standing) < len(given):
            return None
        return max(standing, key=lambda each: each.at, default=None)

    @property
    def precedents(self) -> tuple[SimilarIncident, ...]:
        """Return the past incidents to show, nearest first: those that decided the owner, else those that are alike."""
        decided = self.owner.precedents if self.owner is not None else ()
        return decided or (self.explanation.similar if self.explanation is not None else ())

    @property
    def precedent(self) -> SimilarIncident | None:
        """Return the nearest past incident with the same cause whose fix is known, None if there is none."""
        return next((past for past in self.precedents if past.same_cause and past.fix), None)

    @property
    def given_to(self) -> str:
        """The id of the team that a person gave it to, empty if none did or it was turned away since."""
        return self.hops[-1].given_to if self.hops else ""

    @property
    def turned_away(self) -> frozenset[str]:
        """The ids of the teams that it is not, as people said; one that it was given to since then is none of them."""
        left: set[str] = set()
        for hop in self.hops:
            left = (left | {hop.turned_away}) - {hop.given_to, ""}
        return frozenset(left)

    @property
    def description(self) -> str:
        """All that the alerts say, for triage and for the search for similar incidents."""
        texts = [self.title, *(text for alert in self.alerts[:5] for text in (alert.summary, alert.description))]
        return "\n".join(dict.fromkeys(text for text in texts if text))


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
