"""Incidents: what happened, who works on it, how it relates to others, what people file from it, and what it teaches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.model.alert import CURE, Acknowledgement, Alert, AlertEnd, AlertStatus, Severity
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    EventId,
    PersonName,
    Placement,
    Words,
    channel_reader,
)
from core.model.findings import Findings, PastIncident, Relation, RelationKind, ThreadNote
from core.model.team import NOBODY, Team, current_team, means_nobody, team_named


@dataclass(frozen=True, slots=True)
class Resolution:
    """The note on the end of an incident; a field that it lacks is empty. Untrusted text.

    `readers` are, by field, the reader names of the place where it was said; missing for those of alerts, and so are the
    people who said it.
    """

    root_cause: Words = ""
    fix: Words = ""
    owner: Words = ""
    readers: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    root_cause_by: PersonName = ""
    fix_by: PersonName = ""
    owner_by: PersonName = ""


class IncidentState(StrEnum):
    """The state of an incident. `RESOLVED` says only that no alert fires; `Incident.end` says why."""

    OPEN = "open"
    RESOLVED = "resolved"


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
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Silenced:
    """The reason why an incident is stored but not posted: a maintenance window or a monitoring system silences it.

    `until` is the known end of the silence. `reason` is untrusted. Its `readers` are as in `ThreadNote`, or None if everybody
    who sees the incident may read it.
    """

    silenced_by: str
    reason: Words
    until: datetime
    readers: tuple[str, ...] | None = None
    reason_by: PersonName = ""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The incident of the same alert before this one, and how often the alert fired `since` a time, this one included."""

    incident_id: str
    count: int
    since: datetime


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
    - `severity`: the worst severity of any alert so far.
    - `progress`: the current activity within the stage; may be empty. `stop_id` is the id by which a button stops a
      language model that works on it; empty if none does.
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
    placement: Placement
    state: IncidentState = IncidentState.OPEN
    stage: Stage = Stage.TRIAGING
    progress: str = ""
    stop_id: str = ""
    resolved_at: datetime | None = None
    taken_by: PersonName = ""
    also_firing: tuple[str, ...] = ()
    unseen_count: int = 0
    hops: tuple[Hop, ...] = ()  # reassignments, oldest first
    resolution: Resolution | None = None  # a person's note about the cause and the fix
    reopened_count: int = 0
    reopenings: tuple[datetime, ...] = ()  # the latest reopening times, oldest first
    flapping: bool = False  # fires and resolves repeatedly (see `core.incidents.folding`)
    relations: tuple[Relation, ...] = ()  # to other incidents
    silenced: Silenced | None = None
    recurrence: Recurrence | None = None
    findings: Findings = field(default_factory=Findings)
    notes: tuple[ThreadNote, ...] = ()  # oldest first
    filings: tuple[Filing, ...] = ()  # what people filed, or tried to, oldest first; at most one per target
    revision: int = 1

    def with_findings(self, **changes: Any) -> Incident:
        """Return the incident with these fields of its findings changed."""
        return replace(self, findings=replace(self.findings, **changes))

    def with_placement(self, **changes: Any) -> Incident:
        """Return the incident with these fields of its placement changed."""
        return replace(self, placement=replace(self.placement, **changes))

    @property
    def part_of(self) -> Relation | None:
        """Return the relation to the incident that it was merged into; None if it is shown on its own."""
        return self.relation(RelationKind.PART_OF)

    def relation(self, kind: RelationKind, incident_id: str = "") -> Relation | None:
        """Return the relation of a kind, to this incident if one is given; None if there is none."""
        return next((each for each in self.relations if each.is_a(kind, incident_id)), None)

    def with_relation(self, relation: Relation) -> Incident:
        """Return the incident with a relation, in place of the one that it would contradict."""
        incident_id = relation.incident_id if relation.kind is RelationKind.APART_FROM else ""
        others = self.without_relation(relation.kind, incident_id).relations
        return replace(self, relations=tuple(sorted((*others, relation), key=lambda each: each.kind)))

    def without_relation(self, kind: RelationKind, incident_id: str = "") -> Incident:
        """Return the incident without the relations of a kind, to this incident if one is given."""
        return replace(self, relations=tuple(each for each in self.relations if not each.is_a(kind, incident_id)))

    @property
    def reader_names(self) -> frozenset[str]:
        """Return the reader names by which it is decided who may see it, and what it repeats from elsewhere."""
        places = map(channel_reader, self.placement.places)
        elsewhere = [each.readers or () for each in (*self.relations, self.silenced) if each is not None]
        return frozenset(places).union(*self.findings.quoted, *elsewhere)

    @property
    def firing_count(self) -> int:
        return sum(alert.status is AlertStatus.FIRING for alert in self.alerts) + len(self.also_firing)

    @property
    def end(self) -> AlertEnd:
        """Return how it ended, once it is over: the first end of an alert that is no cure, if there is one."""
        return next((alert.end for alert in self.alerts if alert.end and not alert.is_cured), CURE)

    @property
    def is_cured(self) -> bool:
        """Return whether it is over because each of its alerts was cured, and not only because none fires."""
        return self.state is IncidentState.RESOLVED and self.end == CURE

    @property
    def is_uncured(self) -> bool:
        """Return whether no alert fires, although not each was cured, so that it may go on."""
        return self.state is IncidentState.RESOLVED and self.end != CURE

    def state_text(self, cured: str = "resolved") -> str:
        """Return the state in words: “open”, `cured`, or the end without a cure: “ended: archived in Sentry”. Untrusted."""
        if self.is_uncured:
            return self.end.text[:1].lower() + self.end.text[1:]
        return cured if self.is_cured else str(self.state)

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

        A critical incident is posted at once.
        """
        until = self.findings.held_until
        if until is None or self.severity is Severity.CRITICAL:
            return False
        return now < until if self.resolved_at is None else self.resolved_at < until

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


def may_see_incident(audience: Audience, incident: Incident, channels: Sequence[Channel]) -> bool:
    """Return whether this audience may see an incident, which is limited to the readers of its channels."""
    return audience.may_read(incident.placement.audience(channels).disclosed_to)


class FilingKind(StrEnum):
    ISSUE = "issue"
    POSTMORTEM = "postmortem"
    UPDATE = "update"  # for people outside the teams; its targets are channels


@dataclass(frozen=True, slots=True)
class FilingTarget:
    """A place of `plumbline.yaml` in which people may file.

    `channels` are the channels in which it may be pressed. `people` are those who may press, as `PLATFORM:ID`; empty
    means everybody in these channels. `readers` are the reader names of all who can read what is filed there.
    """

    name: str
    kind: FilingKind
    channels: frozenset[str]
    people: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset({PUBLIC})

    def is_allowed_in(self, audience: Audience) -> bool:
        """Return whether filing is allowed in the channel with this audience, which must include the target's readers."""
        is_here = any(f"channel:{name}" in audience.readers for name in self.channels)
        return is_here and self.is_no_wider_than(audience.disclosed_to)

    def is_no_wider_than(self, readers: frozenset[str]) -> bool:
        """Return whether everybody who can read the target is among these readers."""
        return PUBLIC in readers or self.readers <= readers


@dataclass(frozen=True, slots=True)
class Report:
    """The text to be filed, in Markdown, as a person has sent it. `stem` is a file name without suffix.

    `marker` is a unique word; `footer` contains it, and is written below the text.
    """

    marker: str
    title: str
    text: str
    stem: str
    since: datetime  # the first attempt to file it

    @property
    def footer(self) -> str:
        return f"Filed with Plumbline ({self.marker})"

    @property
    def body(self) -> str:
        return f"{self.text.rstrip()}\n\n{self.footer}\n"

    def path(self, folder: str) -> str:
        return "/".join(filter(None, (folder.strip("/"), f"{self.stem}.md")))


@dataclass(frozen=True, slots=True)
class Filed:
    """A filed report: its name in the other system, and its address."""

    key: str
    url: str


@dataclass(frozen=True, slots=True)
class Filing:
    """A report that a person sent, recorded before it is written. `title`, `text` and `person` are untrusted.

    `filed` is None until it is written; until then, `text` keeps the draft and `problem` says why the last attempt
    failed. `press` is the id of the press that sent it, `since` and `at` are the times of the first and the latest attempt.
    `readers` are the reader names of the place of that press.
    """

    target: str
    kind: FilingKind
    title: str
    text: Words
    person: PersonName
    press: EventId
    since: datetime
    at: datetime
    filed: Filed | None = None
    problem: Words = ""
    readers: tuple[str, ...] = ()


def marker_of(incident_id: str, target: str) -> str:
    """Return the marker of the one report that an incident has in a target."""
    return f"plumbline{hashlib.blake2b(f'{incident_id} {target}'.encode(), digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True)
class OwnerLabels:
    """Labels of the last proposed owner: the right team if known, and the wrong teams."""

    right: str = ""
    wrong: frozenset[str] = frozenset()


def closed_incident(
    incident: Incident,
    teams: Sequence[Team],
    readers: frozenset[str],
    labels: OwnerLabels | None = None,
    note_readers: Mapping[str, tuple[frozenset[str], ...]] | None = None,
) -> PastIncident | None:
    """Return an incident as a past incident; None if nothing can be learned from it.

    With a note, the owner is the team that the note names (or nobody), else the team that people last assigned, else
    the team of the person who took the incident, else empty. The bot's own proposals do not count. Without a note, the
    incident must be cured, and people's statements about its owner must agree. `note_readers` are the readers of the
    fields of the note that fewer people may read than the incident.
    """
    note = incident.resolution or Resolution()
    veiled = dict(note_readers or {})
    if incident.resolution is None:
        owner = _undisputed(incident, teams, labels or OwnerLabels())
        if not owner or not incident.is_cured:
            return None
    elif means_nobody(note.owner):
        owner = NOBODY
    else:
        team = team_named(note.owner, teams) or current_team(incident.given_to, teams) or _taken_by(incident, teams)
        owner = team.id if team else ""
        if team_named(note.owner, teams) is None:
            veiled.pop("owner", None)
    return PastIncident(
        id=incident.id,
        title=incident.title,
        description=incident.description,
        service=incident.service,
        severity=incident.severity,
        started_at=incident.started_at,
        owner=owner,
        reassignments=tuple(dict.fromkeys(hop.turned_away for hop in incident.hops if hop.turned_away)),
        resolved_at=incident.resolved_at or incident.updated_at,
        root_cause=note.root_cause,
        fix=note.fix,
        labels=incident.labels,
        readers=readers,
        veiled=veiled,
        root_cause_by=note.root_cause_by,
        fix_by=note.fix_by,
    )


def _undisputed(incident: Incident, teams: Sequence[Team], labels: OwnerLabels) -> str:
    """Return the owner on which assignment, taking person and labels agree; empty if there is none or they disagree."""
    statements = [current_team(incident.given_to, teams), _taken_by(incident, teams), current_team(labels.right, teams)]
    owners = {team.id: team for team in statements if team is not None}
    if len(owners) != 1:
        return ""
    ((owner, team),) = owners.items()
    return "" if {owner, *team.aliases} & (labels.wrong | incident.turned_away) else owner


def _taken_by(incident: Incident, teams: Sequence[Team]) -> Team | None:
    """Return the only team that this person belongs to."""
    memberships = [team for team in teams if incident.taken_by and incident.taken_by in team.people]
    return memberships[0] if len(memberships) == 1 else None
