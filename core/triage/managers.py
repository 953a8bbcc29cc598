"""Team managers: the evidence for each team in numbers, words and precedents (Triangle, sections 3.1.1 and 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from math import log

from core.knowledge.terms import terms
from core.model.findings import Explanation, Neighbour, PastIncident, SimilarIncident
from core.model.incident import Incident
from core.model.team import NOBODY, CodeOwners, Team, current_ids
from core.ports import Change
from core.rca.dependencies import callees, service_of
from core.rca.incident_signals import IncidentSignals
from core.rca.observations import Observations
from core.rca.signals import Signal, combined
from core.triage.candidates import (
    NEIGHBOURS,
    CodeVote,
    DocumentMatch,
    HistoryVote,
    code_votes,
    discussion_group,
    history_votes,
    matches,
    paths_in,
)
from core.triage.owner_model import IncidentHistory, IncidentText, OwnerModel, Vector

MOST_SIMILAR = 5  # past incidents among which a reason counts those of a team
SHOWN_INCIDENTS = 3  # similar incidents named in a reason, or shown as precedents
SAME_CAUSE = 1 / 3  # share of the weight of a past cause's words that must occur in the present cause and its evidence
NEW_TEAM = 0.3  # probability that teams without a past incident can have by their documents


class Ground(StrEnum):
    """The basis of an argument."""

    HISTORY = "history"
    DOCUMENT = "team document"
    OWNERSHIP = "service ownership"
    MONITORING = "monitoring"
    OBSERVED = "own monitoring"
    CODE = "code ownership"
    LEARNED = "learned from history"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument for a team. `score` is its share of this ground, in [0, 1]; the shares sum to at most 1."""

    ground: Ground
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """The arguments of the manager of one team."""

    team: Team
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Discussion:
    """The opinions of the group, and how much is known about incidents like this one.

    `similarity` in [0, 1] is that of the nearest past incident, `agreement` the leading team's share of the votes of
    similar incidents, and `grounds` those with an argument for any team. A service `is_strange` that the alert names, but
    no team, document of a team or similar incident does.
    """

    opinions: tuple[Opinion, ...]
    grounds: frozenset[Ground]
    similarity: float
    agreement: float
    is_strange: bool


@dataclass(frozen=True, slots=True)
class Owned:
    """A service that a team owns, and the team's share of the strength of all named services."""

    service: str
    share: float


@dataclass(frozen=True, slots=True)
class TriageEvidence:
    """The evidence about the owner, by team id.

    `learned` has a probability for every team; it is empty without a model fitted to the history. `nobody` is the
    share, in [0, 1], of the votes of similar incidents that belonged to no team. `new_owners` are owners of the service
    without a past incident.
    """

    service: str
    teams: Mapping[str, Team]
    neighbours: tuple[Neighbour, ...]
    votes: Mapping[str, HistoryVote]
    fits: Mapping[str, DocumentMatch]
    owners: Mapping[str, Owned]
    located: Mapping[str, Owned]
    learned: Mapping[str, float]
    observed: Mapping[str, Owned]
    code: Mapping[str, CodeVote]
    nobody: float
    new_owners: frozenset[str]


def gather(
    incident: Incident,
    teams: Sequence[Team],
    history: IncidentHistory,
    enrichment: Enrichment,
    model: OwnerModel | None = None,
    code: Sequence[CodeOwners] = (),
    vector: Vector | None = None,
) -> TriageEvidence:
    """Return the evidence for each team, with the text of `enrichment`; `vector` is for the model.

    A past incident of a renamed or merged team counts for the team that has its name among its aliases.
    """
    by_id = {team.id: team for team in teams}
    current = current_ids(teams) | {NOBODY: NOBODY}
    text = "\n".join(part for part in (incident.description, incident.service, enrichment.text) if part)
    neighbours = tuple(
        replace(
            neighbour,
            incident=replace(
                neighbour.incident,
                owner=current[neighbour.incident.owner],
                reassignments=tuple(current.get(team, team) for team in neighbour.incident.reassignments),
            ),
        )
        for neighbour in history.similar(text, NEIGHBOURS, without=frozenset({incident.id}))
        if neighbour.incident.owner in current
    )
    votes, fits = history_votes(neighbours), matches(text, teams)
    return TriageEvidence(
        incident.service,
        by_id,
        neighbours,
        {team: vote for team, vote in votes.items() if team in by_id},
        fits,
        _owners({incident.service: 1.0}, teams),
        _owners(enrichment.services, teams),
        _learned(model.probabilities(IncidentText(incident.title, text), vector), teams, fits) if model else {},
        _owners(enrichment.observed, teams),
        _code_votes(incident, enrichment, by_id, code),
        votes[NOBODY].share if NOBODY in votes else 0.0,
        frozenset(_owners({incident.service: 1.0}, teams))
        - {current[each] for each in history.owners & current.keys()},
    )


def _learned(
    probabilities: Mapping[str, float], teams: Sequence[Team], fits: Mapping[str, DocumentMatch]
) -> Mapping[str, float]:
    """Return the probabilities of the current teams. Those that the model does not know get theirs by document."""
    documented = sum(match.score for match in fits.values())
    new = {
        team.id: NEW_TEAM * fits[team.id].score / documented if team.id in fits else 0.0
        for team in teams
        if team.id not in probabilities
    }
    total = sum(probabilities[team.id] for team in teams if team.id in probabilities)
    if not total:
        return {}
    left = (1 - sum(new.values())) / total
    return {team.id: new[team.id] if team.id in new else left * probabilities[team.id] for team in teams}


def _code_votes(
    incident: Incident, enrichment: Enrichment, teams: Mapping[str, Team], code: Sequence[CodeOwners]
) -> Mapping[str, CodeVote]:
    """Return the votes of files that the incident and its monitoring name, without owners that are not a team."""
    if not code:
        return {}
    services = frozenset(filter(None, (incident.service, *enrichment.services)))
    votes = code_votes(paths_in(f"{incident.description}\n{enrichment.text}"), services, code)
    return {team: vote for team, vote in votes.items() if team in teams}


def choose_group(evidence: TriageEvidence, removed: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the ids of the teams in the discussion, without those `removed`, which turned the incident away."""
    named = [*evidence.located, *evidence.owners, *evidence.observed, *evidence.code]
    return tuple(discussion_group(evidence.votes, evidence.fits, evidence.learned, named, removed))


def discuss(evidence: TriageEvidence, group: Sequence[str], removed: frozenset[str] = frozenset()) -> Discussion:
    """Return the opinions of a group of teams; `removed` are those that turned the incident away."""
    arguments = {team: tuple(_arguments(team, evidence, removed)) for team in group}
    shares = [vote.share for vote in evidence.votes.values()]
    familiar = {
        "",
        *(neighbour.incident.service for neighbour in evidence.neighbours),
        *(word for fit in evidence.fits.values() for word in fit.words),
    }
    return Discussion(
        tuple(Opinion(evidence.teams[team], arguments[team]) for team in group),
        frozenset(argument.ground for of_team in arguments.values() for argument in of_team),
        evidence.neighbours[0].similarity if evidence.neighbours else 0.0,
        max(shares) / sum(shares) if shares else 0.0,
        is_strange=not evidence.owners and evidence.service not in familiar,
    )


def _owners(services: Mapping[str, float], teams: Sequence[Team]) -> dict[str, Owned]:
    """Return, by team id and strongest first, its strongest service and its share of the strength of all services."""
    total = max(1.0, sum(services.values()))
    owned: dict[str, Owned] = {}
    for team in teams:
        own = {service: strength for service, strength in services.items() if service in team.services}
        if own:
            owned[team.id] = Owned(max(own, key=lambda service: own[service]), sum(own.values()) / total)
    return dict(sorted(owned.items(), key=lambda item: (-item[1].share, item[0])))


def _arguments(team: str, evidence: TriageEvidence, removed: frozenset[str]) -> Iterator[Argument]:
    if place := evidence.located.get(team):
        yield Argument(Ground.MONITORING, place.share, f"monitoring points at {place.service}, which it owns")
    if team in evidence.owners:
        yield Argument(Ground.OWNERSHIP, evidence.owners[team].share, f"owns service {evidence.service}")
    if place := evidence.observed.get(team):
        statement = f"its own monitoring shows trouble that begins in {place.service}"
        yield Argument(Ground.OBSERVED, place.share, statement)
    if files := evidence.code.get(team):
        yield Argument(Ground.CODE, files.share, f"owns {files.path} by the rule {files.rule}")
    if team in evidence.learned:
        yield _learned_argument(team, evidence.learned, removed)
    if (vote := evidence.votes.get(team)) and vote.incidents:
        incidents, counted = _counted(vote, evidence.votes)
        ids = ", ".join(neighbour.incident.id for neighbour in incidents)
        yield Argument(Ground.HISTORY, vote.share, f"owned {counted} incidents: {ids}")
    if fit := evidence.fits.get(team):
        share = fit.score / sum(match.score for match in evidence.fits.values())
        quoted = ", ".join(f"“{word}”" for word in fit.words)
        reason = f"its document speaks of {quoted}" if quoted else "its document is about such incidents"
        yield Argument(Ground.DOCUMENT, share, reason)


def _learned_argument(team: str, learned: Mapping[str, float], removed: frozenset[str]) -> Argument:
    """Return the argument from the probability, given that the owner is none of the `removed` teams."""
    left = sum(probability for other, probability in learned.items() if other not in removed)
    share = learned[team] / left if left else 0.0
    return Argument(Ground.LEARNED, share, f"owns {share:.0%} of incidents that read like it, as learned from all")


def _counted(vote: HistoryVote, votes: Mapping[str, HistoryVote]) -> tuple[tuple[Neighbour, ...], str]:
    """Return a team's incidents among the MOST_SIMILAR that vote, and “3 of the 5 most similar”; if there are none, its own
    most similar ones, and “similar”.
    """
    voting = (neighbour for each in votes.values() for neighbour in each.incidents)
    most_similar = sorted(voting, key=lambda neighbour: -neighbour.similarity)[:MOST_SIMILAR]
    if nearest := tuple(neighbour for neighbour in most_similar if neighbour in vote.incidents):
        return nearest[:SHOWN_INCIDENTS], f"{len(nearest)} of the {len(most_similar)} most similar"
    return vote.incidents[:SHOWN_INCIDENTS], "similar"


def precedents(
    evidence: TriageEvidence, owner: str | None, explanation: Explanation | None
) -> tuple[SimilarIncident, ...]:
    """Return the past incidents behind a named owner's votes, otherwise the most similar ones; most similar first."""
    vote = evidence.votes.get(owner) if owner is not None else None
    decided = _counted(vote, evidence.votes)[0] if vote is not None else evidence.neighbours[:SHOWN_INCIDENTS]
    rarity = _rarity(evidence.neighbours)
    return tuple(
        each.incident.as_similar(each.similarity, same_cause=_has_same_cause(each.incident, owner, explanation, rarity))
        for each in decided
    )


def _has_same_cause(
    past: PastIncident, owner: str | None, explanation: Explanation | None, rarity: Mapping[str, float]
) -> bool:
    """Return whether the present cause repeats the words of the past one, for the same team or service."""
    cause = explanation.cause if explanation is not None else None
    if cause is None or (past.owner != owner and past.service != cause.service):
        return False
    evidence = (text for each in cause.evidence for text in (each.source, each.quote))
    words = {term for text in (cause.cause, cause.service, *evidence) for term in terms(text)}
    weights = {term: rarity.get(term, 0.0) for term in set(terms(past.root_cause))}
    total = sum(weights.values())
    return total > 0 and sum(weights[term] for term in words & weights.keys()) >= SAME_CAUSE * total


def _rarity(neighbours: Sequence[Neighbour]) -> Mapping[str, float]:
    """Return the weight of each term in the causes of similar incidents. The fewer have it, the more it weighs."""
    counts = Counter(term for each in neighbours for term in set(terms(each.incident.root_cause)))
    return {term: log((1 + len(neighbours)) / count) for term, count in counts.items()}


MAX_TEXT = 1_000  # characters of evidence that are added to the incident's text
MAX_SIGNS = 3  # strongest signs that are quoted
MAX_CHANGES = 2  # latest changes that are quoted
MAX_QUOTE = 160  # characters
# Factor for signs in a caller, which is mostly a victim, or in a service that only shares words with the incident.
LESS_LIKELY = 0.5
MIN_WORD = 4  # letters of a shared word
EARLIER = timedelta(minutes=15)  # before an incident, in which related trouble of a caller begins


@dataclass(frozen=True, slots=True)
class Enrichment:
    """Team Information Enrichment (Triangle, section 3.3).

    `services` maps a service to the strength, in [0, 1], with which monitoring locates the cause in it. `text` quotes
    its logs and changes; untrusted. `observed` maps a service to the strength, in [0, 1], of trouble that begins there
    according to its own team's monitoring.
    """

    services: Mapping[str, float] = field(default_factory=dict[str, float])
    text: str = ""
    observed: Mapping[str, float] = field(default_factory=dict[str, float])


def from_explanation(
    incident: Incident, dependencies: Mapping[str, tuple[str, ...]], teams: Sequence[Team]
) -> Enrichment:
    """Return the enrichment by an incident's explanation; empty as long as no cause is known.

    A cause in a service that the incident's service neither is nor depends on changes no owner: what was found there is
    another incident, or a load that the owner has to see first. Nor does a mere possibility where one of the `teams` owns
    the incident's service, unless the evidence for it shows that this service suffers: that team looks first.
    """
    explanation = incident.findings.explanation
    if explanation is None or explanation.cause is None:
        return Enrichment()
    services = {*dependencies, *(callee for called in dependencies.values() for callee in called)}
    below = {incident.service, *callees(incident.service, dependencies)}
    own = {service for team in teams if incident.service in team.services for service in team.services}
    suffers = any(incident.service in evidence.source.split() for evidence in explanation.cause.evidence)
    may_move = explanation.is_sure or suffers or not own
    places = dict.fromkeys(each.service for each in explanation.hypotheses if may_move or each.service in own)
    is_beside = incident.service in services and explanation.cause.service in services - below
    if is_beside or explanation.cause.service not in places:
        return Enrichment()
    # Scores are shares, of which causes that are not shown have some. Those among the shown ones locate the cause.
    total = sum(hypothesis.score for hypothesis in explanation.hypotheses) or 1.0
    strengths = {
        place: sum(hypothesis.score for hypothesis in explanation.hypotheses if hypothesis.service == place) / total
        for place in places
    }
    quotes = [explanation.cause.cause, *(evidence.quote for evidence in explanation.cause.evidence)]
    return Enrichment(strengths, "\n".join(quotes)[:MAX_TEXT])


@dataclass(frozen=True, slots=True)
class TeamFinding:
    """A team's monitoring. `services` maps its services to the strength, in (0, 1], of trouble that begins there.

    Trouble that a callee's earlier trouble explains begins elsewhere, and trouble that is unrelated to the incident
    does not count. `text` quotes the logs and changes; untrusted.
    """

    services: Mapping[str, float] = field(default_factory=dict[str, float])
    text: str = ""


def finding_of(
    team: Team, incident: Incident, observations: Observations, incident_signals: IncidentSignals
) -> TeamFinding:
    """Return the finding of a team's manager in its own services.

    Trouble is related to the incident if the incident's service depends on the team's or, unless it began long before,
    vice versa, or if it shares words with the incident.
    """
    own = [service for service in observations.services if service in team.services]
    service = service_of(incident, observations.dependencies)
    connected = _connected(service, observations.dependencies)
    below = {service, *callees(service, observations.dependencies)}
    words = frozenset(word for word in terms(incident.description) if len(word) >= MIN_WORD)

    def related(sign: Signal) -> bool:
        is_recent = sign.service in below or sign.since >= incident.started_at - EARLIER
        return sign.trouble and is_recent and (sign.service in connected or bool(words & sign.terms))

    signs = {each: [sign for sign in incident_signals.by_service.get(each, ()) if related(sign)] for each in own}
    arising = {
        each: combined(sign.strength for sign in signals)
        * (1 - incident_signals.explained_by(each)[1])
        * (1.0 if each in below else LESS_LIKELY)
        for each, signals in signs.items()
    }
    strongest = sorted((sign for signals in signs.values() for sign in signals), key=lambda sign: -sign.strength)
    changes = [
        change
        for change in reversed(observations.changes)
        if set(change.touched) & set(own)
        and (set(change.touched) & below or change.at >= incident.started_at - EARLIER)
        and (connected & set(change.touched) or words & set(terms(_text_of(change))))
    ]
    quotes = [sign.evidence.quote[:MAX_QUOTE] for sign in strongest[:MAX_SIGNS]]
    quotes += [_text_of(change) for change in changes[:MAX_CHANGES]]
    return TeamFinding({each: strength for each, strength in arising.items() if strength > 0}, "\n".join(quotes))


def _connected(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the service with its direct and indirect callees and callers; empty for an unknown service."""
    if not service:
        return frozenset()
    callers = (other for other in dependencies if service in callees(other, dependencies))
    return frozenset({service, *callees(service, dependencies), *callers})


def _text_of(change: Change) -> str:
    return " ".join([change.title[:MAX_QUOTE], *change.files])[: 2 * MAX_QUOTE]
