"""Findings about an incident: its owner, page and runbook, its relations to other incidents, and its explanation: evidence,
possible causes, missing data, and the past incidents that it resembles.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from core.model.alert import Severity
from core.model.answer import EVIDENCE, Citation
from core.model.badge import Badge
from core.model.conversation import PUBLIC, NameFirst, Personal, PersonName, Words
from core.model.language_model import Responsibility, Trajectory


class EvidenceKind(StrEnum):
    LOG = "log"
    METRIC = "metric"
    CHANGE = "change"
    PAST_INCIDENT = "past incident"
    TOPOLOGY = "topology"
    NOTE = "note"  # by a person in the thread


@dataclass(frozen=True, slots=True)
class Evidence:
    """One quoted line and its source. `quote` is verbatim and untrusted. `readers` are those of a note.

    `quote_by` is the person who wrote what is quoted of a past incident.
    """

    kind: EvidenceKind
    source: Annotated[str, Personal.NAME, EvidenceKind.NOTE]
    quote: Words
    at: datetime | None = None
    url: str = ""
    readers: tuple[str, ...] = ()
    quote_by: PersonName = ""


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

    `at` is when it took effect. `deploys` are the ids of the deployments that shipped it.
    """

    id: str
    kind: str
    title: str
    author: PersonName
    at: datetime
    services: tuple[str, ...]
    deploys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return change_name(self.kind, self.id)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause. `score` in [0, 1] ranks it among its rivals and is not a probability.

    `evidence` supports it, `contradicting` contradicts it. `change` is None if the cause is not a change; `origin` then
    gives its kind, and `subject` the external host, record or node to blame. `seconds_to_first_sign` is the time
    from the change to the first symptom.

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
    seconds_to_first_sign: float | None = None
    solution: str = ""
    found_by: str = ""
    badge: Badge | None = None
    prediction_id: str | None = None

    @property
    def short(self) -> str:
        """Return the cause in a few words: the change, or the first clause of the description."""
        if self.change is not None:
            return f"{self.change.name} ({self.change.title.rstrip('.')})"
        return self.cause.partition("; ")[0].rstrip(".")

    @property
    def reservation(self) -> str:
        """Return what to check before the cause is acted on: for a change, and what a model found, what would disprove it."""
        if self.change is None and self.next_check:
            return self.next_check
        disproof = f"{self.disproof[:1].lower()}{self.disproof[1:]}"
        return f"Look for what would disprove it: {disproof}" if disproof else ""


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
class ThreadNote:
    """A remark in the incident's thread about its cause. All texts are untrusted.

    `readers` are the reader names of the place where it was said.
    """

    person: PersonName
    text: Words
    at: datetime
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    text: str


UNREAD_RIVAL = "a cause that shows in nothing that was read"  # of a cause that is not sure, where no other one is near


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
    def is_sure(self) -> bool:
        """Return whether the first cause is stated without a word of doubt."""
        return self.badge is not None and self.badge.is_sure

    @property
    def summary(self) -> str:
        """Return the first cause in words; without a strong badge as a possibility, beside a second. Empty without one.

        A cause on which the engines disagree is shown on its own, and not here.
        """
        if (first := self.cause) is None or self.is_sure:
            return first.cause if first is not None else ""
        rivals = [] if self.dissent else [each.short for each in self.hypotheses[1:2]] or [UNREAD_RIVAL]
        return f"Possibly: {'; or: '.join([first.cause.rstrip('.'), *rivals])}."

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
class SimilarIncident:
    """A similar past incident; `similarity` is in [0, 1]. All texts are untrusted.

    `same_cause`: its cause is the cause found now, so its fix may help again. An audience must be among all `readers`.
    """

    id: str
    title: str
    owner: str
    root_cause: Words
    fix: Words
    similarity: float
    url: str = ""
    same_cause: bool = False
    readers: tuple[tuple[str, ...], ...] = ()
    root_cause_by: PersonName = ""
    fix_by: PersonName = ""


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
    resolved_at: datetime | None = None
    reassignments: tuple[str, ...] = ()
    root_cause: str = ""
    fix: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})
    veiled: dict[str, tuple[frozenset[str], ...]] = field(default_factory=dict[str, tuple[frozenset[str], ...]])
    root_cause_by: str = ""
    fix_by: str = ""

    def as_similar(self, similarity: float, *, same_cause: bool = False) -> SimilarIncident:
        """Return the incident as one that resembles another."""
        shown = [self.readers, *(each for name, veils in self.veiled.items() if getattr(self, name) for each in veils)]
        readers = tuple(tuple(sorted(each)) for each in shown)
        return SimilarIncident(
            self.id,
            self.title,
            self.owner,
            self.root_cause,
            self.fix,
            similarity,
            self.url,
            same_cause,
            readers,
            self.root_cause_by,
            self.fix_by,
        )

    def without(self, hidden: Collection[frozenset[str]]) -> PastIncident:
        """Return the incident with the fields empty whose readers are among the hidden ones."""
        blank = {name: "" for name, readers in self.veiled.items() if any(each in hidden for each in readers)}
        return replace(self, **blank) if blank else self


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A past incident and its cosine similarity to the text that was asked for, in (0, 1]."""

    incident: PastIncident
    similarity: float


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
    time.
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
class PageJudgement:
    """The judgement whether an incident needs a person, made when it began.

    `badge` is that of the claim that it does. `evidence` gives the reasons in words. `held_until`: until then it is not
    posted unless it becomes critical; None if it was not held back. The rest is what was known when it was judged:
    `severity`; `deploying`, a deployment was in progress; `has_parent`, it was part of another.
    `from_prior`: too little was known of earlier incidents, so the probability is that of generated ones.
    """

    badge: Badge
    prediction_id: str
    evidence: tuple[str, ...]
    severity: Severity
    deploying: bool = False
    held_until: datetime | None = None
    has_parent: bool = False
    from_prior: bool = False


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
    readers: tuple[str, ...] | None = None  # of the page


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of the investigation of an incident. A field is None if nothing was found yet.

    - `cut_short`: why the analysis ended early; empty if it did not.
    - `asked`: what a language model was asked, and what was left out for its budget, in words; empty if none was.
    - `basis`: the reader names with which documents and past incidents are quoted; None if not recorded.
    """

    owner: OwnerProposal | None = None
    explanation: Explanation | None = None
    runbook: Runbook | None = None
    page: PageJudgement | None = None
    cut_short: str = ""
    asked: str = ""
    basis: tuple[str, ...] | None = None

    @property
    def likely_owner(self) -> TeamScore | None:
        """Return the team that probably owns the incident; None if none can be named, or not yet."""
        return self.owner.owner if self.owner is not None else None

    @property
    def cause(self) -> Hypothesis | None:
        """Return the likeliest cause; None if none is known."""
        return self.explanation.cause if self.explanation is not None else None

    @property
    def held_until(self) -> datetime | None:
        """Return until when the incident is not posted; None if it was not held back."""
        return self.page.held_until if self.page is not None else None

    @property
    def quoted(self) -> tuple[tuple[str, ...], ...]:
        """Return the reader names of what is quoted: an audience must be among all of them."""
        similar = self.explanation.similar if self.explanation is not None else ()
        pages = (self.runbook.readers,) if self.runbook is not None and self.runbook.readers else ()
        return (*pages, *(readers for past in (*similar, *self.precedents) for readers in past.readers))

    @property
    def precedents(self) -> tuple[SimilarIncident, ...]:
        """Return the past incidents to show, nearest first: those that decided the owner, else the similar ones."""
        decided = self.owner.precedents if self.owner is not None else ()
        return decided or (self.explanation.similar if self.explanation is not None else ())

    @property
    def precedent(self) -> SimilarIncident | None:
        """Return the nearest past incident with the same cause and a known fix; None if there is none."""
        return next((past for past in self.precedents if past.same_cause and past.fix), None)


class RelationKind(StrEnum):
    """The kind of a relation. An incident has at most one of each but `APART_FROM`.

    - PART_OF: it was merged into the other one, is shown as a part of it and not investigated on its own.
    - MAY_BE_PART_OF: a suggestion; both are investigated until a person merges them.
    - APART_FROM: it was separated from the other one, and is not merged into it again by rules.
    """

    PART_OF = "part of"
    MAY_BE_PART_OF = "may be part of"
    APART_FROM = "apart from"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of an incident to another one. All texts are untrusted.

    - `incident_id`, `title`: those of the other one; the title may be empty.
    - `reasons`: in words.
    - `at`: when it was merged; None unless it was. `person` merged it, empty if the rules of
      `core.incidents.folding` did.
    - `provisional`: the part only arrived together with the other one. It is investigated, and leaves once another cause
      is found for it.
    - `readers`: those of the other one, if this is a suggestion that names it; None otherwise.
    """

    kind: RelationKind
    incident_id: str
    title: str = ""
    reasons: tuple[str, ...] = ()
    at: datetime | None = None
    person: PersonName = ""
    provisional: bool = False
    readers: tuple[str, ...] | None = None

    @property
    def reason(self) -> str:
        """Return all reasons in one text; empty if there is none."""
        return "; ".join(self.reasons)

    def is_a(self, kind: RelationKind, incident_id: str = "") -> bool:
        """Return whether it is of a kind, and to this incident if one is given."""
        return self.kind is kind and incident_id in ("", self.incident_id)
