"""Alerts, and the incidents that group them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from core.model.answer import EVIDENCE, Citation
from core.model.badge import Badge
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    MessageReference,
    NameFirst,
    Personal,
    PersonName,
    Place,
    Words,
    channel_audience,
    common_audience,
)
from core.model.correlation import current_correlation
from core.model.filing import Filing
from core.model.trajectory import Responsibility, Trajectory

MAX_KEPT_ALERTS = 50  # alerts kept in full per incident; further ones are counted


class AlertStatus(StrEnum):
    """The state of an alert. `UPDATED` occurs only in deliveries: other fields changed, and the state did not."""

    FIRING = "firing"
    RESOLVED = "resolved"
    UPDATED = "updated"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The note on the end of an incident; a field that it lacks is empty. Untrusted text.

    `readers` are, by field, the reader names of the place where it was said; unknown for older notes and for alerts.
    """

    root_cause: str = ""
    fix: str = ""
    owner: str = ""
    readers: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An acknowledgement of an alert in the monitoring system, or (`withdrawn`) its withdrawal.

    `by` is untrusted, and empty if the monitoring system does not name the person.
    """

    by: PersonName
    at: datetime
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert from a monitoring system. All texts are untrusted.

    - `note`: how the alert ended (see `Resolution`); empty while it fires.
    - `acknowledged`: None if unknown.
    - `as_of`: the sender's time of this state, None if unknown. States older than the known one are ignored.
    - `url`: the address of the alert; `runbook_url`: the page that it names for its handling. Both are web addresses or
      empty.
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
    """A webhook request: at least one alert, all of the group `group_key`.

    - `key`: the idempotency key, equal for requests with equal content. It applies until the incident is resolved,
      because an alert that fires again may be sent with equal content; with `one_event`, it names one event of the
      sender and applies for good.
    - `omitted`: the number of alerts that the request counts but does not contain.
    - `replicated`: the sender may run in replicas, of which one may report late what another has already resolved.
    - `correlation`: that of the request.
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
        """Return whether at least one of its alerts is firing."""
        return any(alert.status is AlertStatus.FIRING for alert in self.alerts)

    @property
    def first_firing(self) -> Alert:
        """Return the earliest firing alert (there must be one), which names the incident that it opens."""
        firing = (alert for alert in self.alerts if alert.status is AlertStatus.FIRING)
        return min(firing, key=lambda alert: (alert.starts_at, alert.fingerprint))


class IncidentState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class TeamScore:
    """A candidate owner with its share of the votes, in [0, 1]. The shares of all candidates sum to at most 1."""

    team_id: str
    team_name: str
    score: float
    reasons: tuple[NameFirst, ...] = ()


@dataclass(frozen=True, slots=True)
class Vote:
    """A team manager's vote in one round: the owner, or None for an abstention, and the reason.

    `hop` is the number of earlier reassignments; the rounds restart after each. `voter_name` is the team's name at the
    time, empty if it was not stored.
    """

    round: int
    voter: str
    choice: str | None
    reason: str
    hop: int = 0
    voter_name: str = ""


@dataclass(frozen=True, slots=True)
class AskedTeam:
    """A candidate team that is asked whether the incident is theirs, with its on-call people.

    `on_call_unknown` names the schedules that failed to answer, empty if none did. All texts are untrusted.
    """

    team_id: str
    team_name: str
    on_call: tuple[NameFirst, ...] = ()
    on_call_unknown: str = ""


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """A similar past incident; `similarity` is in [0, 1]. All texts are untrusted.

    `same_cause`: its cause is the cause found now, so its fix may help again.
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
    """The proposed owner of an incident. `candidates` are sorted best first and begin with the owner.

    - `owner`: None if nobody can be named; then `asked` contains the best two candidates with any evidence.
    - `votes`: those of the negotiation, in order, after those of earlier hops.
    - `note`: what did not go as planned; empty if everything did.
    - `on_call_unknown`: the schedules that failed to answer; empty if none did.
    - `precedents`: the past incidents that decided the proposal, nearest first.
    """

    owner: TeamScore | None
    candidates: tuple[TeamScore, ...]
    on_call: tuple[NameFirst, ...]
    badge: Badge
    prediction_id: str
    votes: tuple[Vote, ...] = ()
    note: str = ""
    on_call_unknown: str = ""
    asked: tuple[AskedTeam, ...] = ()
    precedents: tuple[SimilarIncident, ...] = ()

    @property
    def not_asked(self) -> tuple[TeamScore, ...]:
        """Return the candidates that are not asked."""
        team_ids = {team.team_id for team in self.asked}
        return tuple(candidate for candidate in self.candidates if candidate.team_id not in team_ids)


@dataclass(frozen=True, slots=True)
class SeveritySuggestion:
    """A suggested severity. `evidence` gives the reasons in words; it names past incidents and is untrusted."""

    severity: Severity
    evidence: tuple[str, ...]
    badge: Badge
    prediction_id: str


@dataclass(frozen=True, slots=True)
class PageJudgement:
    """The judgement whether an incident needs a person, made when it began.

    `badge` is that of the claim that it does. `evidence` gives the reasons in words. `held_until`: until then it is not
    posted unless it becomes critical; None if it was not held back. The rest is what was known when it was judged:
    `deploying`, a deployment was in progress; `severity`, None if not recorded; `has_parent`, it was part of another.
    `from_prior`: too little was known of earlier incidents, so the probability is that of generated ones.
    """

    badge: Badge
    prediction_id: str
    evidence: tuple[str, ...]
    deploying: bool = False
    held_until: datetime | None = None
    severity: Severity | None = None
    has_parent: bool = False
    from_prior: bool = False


@dataclass(frozen=True, slots=True)
class DuplicateSuggestion:
    """A suggestion that an incident duplicates an earlier one.

    `evidence` gives the reasons. All texts are untrusted.
    """

    incident_id: str
    title: str
    evidence: tuple[str, ...]
    badge: Badge
    prediction_id: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A person's statement that an incident does not belong to team `turned_away` (empty if none was named), with the
    reason.

    `given_to` is the new team, empty if the person does not know. Names and reason are untrusted. `readers` are those of
    the reason, as in `ThreadNote`.
    """

    turned_away: str
    given_to: str
    person: PersonName
    reason: Words
    at: datetime
    readers: tuple[str, ...] | None = None


class EvidenceKind(StrEnum):
    LOG = "log"
    METRIC = "metric"
    TRACE = "trace"  # only in stored incidents; traces are no longer used as evidence
    CHANGE = "change"
    PAST_INCIDENT = "past incident"
    TOPOLOGY = "topology"
    NOTE = "note"  # by a person in the thread


@dataclass(frozen=True, slots=True)
class Evidence:
    """One quoted line and its source. `quote` is verbatim and untrusted. `readers` are those of a note."""

    kind: EvidenceKind
    source: Annotated[str, Personal.NAME, EvidenceKind.NOTE]
    quote: Words
    at: datetime | None = None
    url: str = ""
    readers: tuple[str, ...] | None = None


class Origin(StrEnum):
    """The kind of a cause."""

    CHANGE = "change"
    EXTERNAL = "external"  # an external system failed, or an external resource expired or ran out
    LOAD = "load"  # more requests than usual
    DATA = "data"  # one record, tenant or message
    PLATFORM = "platform"  # a node, a disk, a store, a network
    SERVICE = "service"  # a failure inside a service, with unknown reason
    BUILD = "build"
    OTHER = "other"  # reported by a language model or a tool


def change_name(kind: str, change_id: str) -> str:
    """Return “commit 4f2a” for the kind and the id of a change; the id alone if it begins with the kind, as “config-4711”."""
    return change_id if change_id.casefold().startswith(kind.casefold()) else f"{kind} {change_id}"


@dataclass(frozen=True, slots=True)
class BlamedChange:
    """The change that a cause blames. All texts are untrusted.

    `at` is when it took effect. `deploys` are the ids of the deployments that shipped it, `files` and `moved` the paths
    and diff lines that the symptoms mention, `shared` the words that it shares with the symptoms.
    """

    id: str
    kind: str
    title: str
    author: PersonName
    at: datetime
    services: tuple[str, ...]
    deploys: tuple[str, ...] = ()
    url: str = ""
    files: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return change_name(self.kind, self.id)


@dataclass(frozen=True, slots=True)
class Followed:
    """A symptom that followed a cause: in which metric, log message or operation (`subject`) of which service, since
    when.

    `what` describes it in words.
    """

    service: str
    kind: EvidenceKind
    subject: str
    since: datetime
    what: str


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause. `score` in [0, 1] ranks it among its rivals and is not a probability.

    `evidence` supports it, `contradicting` contradicts it. `change` is None if the cause is not a change; `origin` then
    gives its kind, and `subject` the external host, record or node to blame. `followed` are its symptoms, most
    informative first; `seconds_to_first_sign` is the time from the change to the first symptom.

    `solution` is what a language model proposes to do about it, and `found_by` the model that found the cause itself; both
    are empty without one. `badge` and `prediction_id` belong to a cause of which the other engine disagrees, and which is
    therefore a claim of its own beside the first cause; None otherwise.
    """

    cause: str
    service: str
    score: float
    evidence: tuple[Evidence, ...]
    disproof: str
    next_check: str
    responsibility: Responsibility | None = None  # None if unknown
    contradicting: tuple[Evidence, ...] = ()
    origin: Origin = Origin.OTHER
    change: BlamedChange | None = None
    subject: str = ""
    followed: tuple[Followed, ...] = ()
    seconds_to_first_sign: float | None = None
    solution: str = ""
    found_by: str = ""
    badge: Badge | None = None
    prediction_id: str | None = None

    @property
    def next_step(self) -> str:
        """Return what to do: the proposed solution, otherwise what to check."""
        return self.solution or self.next_check

    @property
    def short(self) -> str:
        """Return the cause in a few words: the change, or the description."""
        if self.change is not None:
            return f"{self.change.name} ({self.change.title.rstrip('.')})"
        return self.cause.rstrip(".")


class GapReason(StrEnum):
    """The reason why a tool provided no data."""

    MISSING = "not set up"
    REFUSED = "access refused"
    TIMED_OUT = "timed out"
    FAILED = "failed"
    OUT_OF_WINDOW = "no data from that time"
    NO_FAILURE = "no failed build"
    LEFT_OUT = "left out"  # of an answer: reading it again would not help

    @property
    def is_failure(self) -> bool:
        """Return whether a configured tool failed, so that it may answer later."""
        return self in (GapReason.REFUSED, GapReason.TIMED_OUT, GapReason.FAILED)

    @property
    def is_read(self) -> bool:
        """Return whether the tool was read, and had nothing to show."""
        return self is GapReason.NO_FAILURE


@dataclass(frozen=True, slots=True)
class Gap:
    """Data that the investigation lacks: `tool` was not read, or not completely.

    `detail` may be empty. `kinds` are the kinds of data that it would have given; empty if that is not known. All texts
    are untrusted.
    """

    tool: str
    reason: GapReason
    detail: str = ""
    kinds: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def system(self) -> str:
        """Return the name of the reader, of which only a part may be missing: “loki” of “loki: records to 09:40”."""
        return self.tool.partition(": ")[0]

    @property
    def text(self) -> str:
        """Return, for example, “loki: timed out (no answer within 8 s)”."""
        return f"{self.tool}: {self.reason}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Runbook:
    """The runbook that an alert names.

    `url` is the address in the alert, which may be empty. `citation` is the section of the indexed page that says what
    to do; None if the page is not indexed. `next_action` and `command` are quoted from that section; `command` may be
    empty. All texts are untrusted.
    """

    url: str
    citation: Citation | None = None
    next_action: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class SuggestedParent:
    """An open incident that another one may be part of. Both are investigated until a person merges them.

    `reason` is given in words. All texts are untrusted.
    """

    incident_id: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class ThreadNote:
    """A remark in the incident's thread about its cause. All texts are untrusted.

    `readers` are the reader names of the place where it was said; None if unknown, as in older notes.
    """

    person: PersonName
    text: Words
    at: datetime
    readers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    text: str


TIED = 0.6  # share of the first cause's score at which the second is about as likely


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of a root-cause analysis: ranked hypotheses, or none and what was ruled out.

    `badge` and `prediction_id` belong to the first hypothesis; both are None if there is none. `trajectory` is the
    investigation of a language model, None without one; `engine` is `evidence`, or the model whose finding leads.
    `rechecked_after` is the person's remark that it takes into account, if any.
    """

    hypotheses: tuple[Hypothesis, ...]
    ruled_out: tuple[str, ...]
    similar: tuple[SimilarIncident, ...]
    timeline: tuple[TimelineEntry, ...]
    gaps: tuple[Gap, ...] = ()  # data that could not be read
    badge: Badge | None = None
    prediction_id: str | None = None
    engine: str = EVIDENCE
    trajectory: Trajectory | None = None
    rechecked_after: ThreadNote | None = None
    first_failing: str = ""  # the service with the first symptom; empty if unknown
    unchecked: tuple[str, ...] = ()  # neither a cause nor ruled out, because what would tell was not read

    @property
    def is_tied(self) -> bool:
        """Return whether the second cause is about as likely as the first, so that both should be shown.

        A cause on which the engines disagree is shown on its own.
        """
        return (
            self.dissent is None
            and len(self.hypotheses) > 1
            and self.hypotheses[1].score >= TIED * self.hypotheses[0].score
        )

    @property
    def summary(self) -> str:
        """Return the first cause in words, and the second if it is about as likely; empty without a cause."""
        if not self.hypotheses:
            return ""
        first = self.hypotheses[0].cause
        if not self.is_tied:
            return first
        first = first.removesuffix(".")
        return f"{first}. Or, about as likely: {self.hypotheses[1].short}."

    @property
    def cause(self) -> Hypothesis | None:
        return self.hypotheses[0] if self.hypotheses else None

    @property
    def claims(self) -> tuple[tuple[str, Hypothesis], ...]:
        """Return the causes that people can judge, the first one first, each after the id of its prediction."""
        claimed = [(self.prediction_id, self.cause), *((each.prediction_id, each) for each in self.hypotheses[1:])]
        return tuple((claim, cause) for claim, cause in claimed if claim and cause is not None)

    @property
    def dissent(self) -> Hypothesis | None:
        """Return the first cause of the engine that disagrees with the first cause; None if both agree."""
        return next((each for each in self.hypotheses[1:] if each.badge is not None), None)


@dataclass(frozen=True, slots=True)
class Merge:
    """The merge of an incident into its parent. A merged incident is shown as a part and not investigated on its own.

    `leader` is the parent's id. `reason` is given in words; `person` merged them, empty if the rules of
    `core.incidents.grouping` did. Both are untrusted. A `provisional` part only arrived together with its parent: it is
    investigated, and leaves once another cause is found for it.
    """

    leader: str
    reason: str
    at: datetime
    person: PersonName = ""
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class Silenced:
    """The reason why an incident is stored but not posted: a maintenance window or a monitoring system silences it.

    `until` is the known end of the silence. `reason` is untrusted.
    """

    silenced_by: str
    reason: str
    until: datetime


class Stage(StrEnum):
    """The stage of the work on an incident, shown in its message."""

    TRIAGING = "finding the owner"
    EXPLAINING = "looking for the cause"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident. It is stored as a whole, and `revision` grows by one with every change.

    - `alerts`: the alerts kept in full, firing ones first. `also_firing`: the fingerprints of further firing alerts, in
      order.
    - `alert_count`: the number of distinct alerts so far; `unseen_count` of them were only counted by a delivery.
    - `delivery_count`: the number of requests folded into it. `reopened_count`: how often it fired again after it was
      resolved.
    - `severity`: the worst severity of any alert so far, unless a person set it (`severity_by`).
    - `progress`: the current activity within the stage; may be empty. `stop_id` is the id by which a button stops a
      language model that works on it; empty if none does.
    - `duplicate_of`: the id of the incident that a person confirmed it duplicates.
    - `basis`: the reader names with which its findings quote documents and past incidents; None if not recorded.
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
    stop_id: str = ""
    resolved_at: datetime | None = None
    message: MessageReference | None = None
    taken_by: PersonName = ""
    owner: OwnerProposal | None = None
    explanation: Explanation | None = None
    also_firing: tuple[str, ...] = ()
    unseen_count: int = 0
    hops: tuple[Hop, ...] = ()  # reassignments, oldest first
    resolution: Resolution | None = None  # a person's note about the cause and the fix
    reopened_count: int = 0
    also_in: tuple[Place, ...] = ()  # further places with a copy of the message; the thread of `place` is the main one
    reopenings: tuple[datetime, ...] = ()  # the latest reopening times, oldest first
    flapping: bool = False  # fires and resolves repeatedly (see `core.incidents.folding`)
    absorbed: Merge | None = None
    apart_from: tuple[str, ...] = ()  # ids of incidents that it was separated from
    silenced: Silenced | None = None
    cut_short: str = ""  # why the analysis ended early; empty if it did not
    suggested_severity: SeveritySuggestion | None = None
    severity_by: PersonName = ""
    page: PageJudgement | None = None
    suggested_duplicate: DuplicateSuggestion | None = None
    duplicate_of: str = ""
    suggested_parent: SuggestedParent | None = None
    runbook: Runbook | None = None
    notes: tuple[ThreadNote, ...] = ()  # oldest first
    filings: tuple[Filing, ...] = ()  # what people filed, or tried to, oldest first; at most one per target
    basis: tuple[str, ...] | None = None
    revision: int = 1

    @property
    def places(self) -> tuple[Place, ...]:
        return (self.place, *self.also_in)

    @property
    def firing_count(self) -> int:
        return sum(alert.status is AlertStatus.FIRING for alert in self.alerts) + len(self.also_firing)

    @property
    def acknowledged(self) -> Acknowledgement | None:
        """Return the latest acknowledgement, if all firing alerts (or all alerts, if none is firing) are acknowledged."""
        firing = [alert for alert in self.alerts if alert.status is AlertStatus.FIRING]
        given = [alert.acknowledged for alert in firing or self.alerts]
        standing = [each for each in given if each is not None and not each.withdrawn]
        if self.also_firing or len(standing) < len(given):
            return None
        return max(standing, key=lambda each: each.at, default=None)

    def is_held_back(self, now: datetime) -> bool:
        """Return whether it is not posted for now, or was over before it would have been posted.

        A critical incident is posted at once, and so is one that Plumbline suggests to be critical.
        """
        until = self.page.held_until if self.page is not None else None
        suggested = self.suggested_severity.severity if self.suggested_severity is not None else None
        if until is None or Severity.CRITICAL in (self.severity, suggested):
            return False
        return now < until if self.resolved_at is None else self.resolved_at < until

    @property
    def precedents(self) -> tuple[SimilarIncident, ...]:
        """Return the past incidents to show, nearest first: those that decided the owner, else the similar ones."""
        decided = self.owner.precedents if self.owner is not None else ()
        return decided or (self.explanation.similar if self.explanation is not None else ())

    @property
    def precedent(self) -> SimilarIncident | None:
        """Return the nearest past incident with the same cause and a known fix; None if there is none."""
        return next((past for past in self.precedents if past.same_cause and past.fix), None)

    @property
    def given_to(self) -> str:
        """Return the id of the team that a person assigned; empty if none is assigned."""
        return self.hops[-1].given_to if self.hops else ""

    @property
    def turned_away(self) -> frozenset[str]:
        """Return the ids of the teams that rejected the incident, without those that it was assigned to later."""
        left: set[str] = set()
        for hop in self.hops:
            left = (left | {hop.turned_away}) - {hop.given_to, ""}
        return frozenset(left)

    @property
    def description(self) -> str:
        """Return the texts of the alerts, for triage and similarity search."""
        texts = [self.title, *(text for alert in self.alerts[:5] for text in (alert.summary, alert.description))]
        return "\n".join(dict.fromkeys(text for text in texts if text))


@dataclass(frozen=True, slots=True)
class PastIncident:
    """A closed incident of the history that triage and root-cause analysis learn from.

    `readers` are the reader names that may see it (see `Audience`), `veiled` those of the fields that fewer may see, who
    must be among all of them.
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
    veiled: dict[str, tuple[frozenset[str], ...]] = field(default_factory=dict[str, tuple[frozenset[str], ...]])

    def without(self, hidden: Collection[frozenset[str]]) -> PastIncident:
        """Return the incident with the fields empty whose readers are among the hidden ones."""
        blank = {name: "" for name, readers in self.veiled.items() if any(each in hidden for each in readers)}
        return replace(self, **blank) if blank else self


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A past incident and its cosine similarity to the text that was asked for, in (0, 1]."""

    incident: PastIncident
    similarity: float


def may_see_incident(audience: Audience, incident: Incident, channels: Sequence[Channel]) -> bool:
    """Return whether this audience may see an incident, which is limited to the readers of its channels."""
    return audience.may_read(incident_audience(incident, channels).disclosed_to)


def incident_audience(incident: Incident, channels: Sequence[Channel]) -> Audience:
    """Return the audience of an incident's message: readers common to all its places, disclosed to each of them."""
    return common_audience([channel_audience(place, channels) for place in incident.places])
