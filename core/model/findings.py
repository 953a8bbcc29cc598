"""Findings about an incident: its owner, page and runbook, and its relations to other incidents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.model.alert import Severity
from core.model.answer import Citation
from core.model.badge import Badge
from core.model.conversation import NameFirst, PersonName
from core.model.explanation import Explanation, Hypothesis, SimilarIncident


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
    - DUPLICATE_OF, MAY_DUPLICATE: stored by earlier versions, and not shown.
    """

    PART_OF = "part of"
    MAY_BE_PART_OF = "may be part of"
    APART_FROM = "apart from"
    DUPLICATE_OF = "duplicate of"
    MAY_DUPLICATE = "may duplicate"


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
