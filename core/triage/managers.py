"""Team managers: what speaks for each team, in numbers and in words (Triangle, section 3.1.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.incident import Incident
from core.team import Team
from core.triage.candidates import NEIGHBOURS, HistoryVote, discussion_group, history_votes
from core.triage.documents import DocumentMatch, matches
from core.triage.enrichment import Enrichment
from core.triage.history import IncidentHistory

SHOWN_INCIDENTS = 3  # similar incidents named in a reason


class Ground(StrEnum):
    """What an argument rests on."""

    HISTORY = "history"
    DOCUMENT = "team document"
    OWNERSHIP = "service ownership"
    MONITORING = "monitoring"


@dataclass(frozen=True, slots=True)
class Argument:
    """`score` in [0, 1] is the team's share of what this ground has to give; over all teams they sum to at most 1."""

    ground: Ground
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the manager of one team brings forward."""

    team: Team
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Discussion:
    """The opinions of the group, and how much the references know of such an incident at all.

    `similarity` in [0, 1] is that of the nearest past incident, `agreement` the share of the votes of similar incidents
    that goes to the team with the most; `grounds` are those that spoke for any team.
    """

    opinions: tuple[Opinion, ...]
    grounds: frozenset[Ground]
    similarity: float
    agreement: float


def discuss(incident: Incident, teams: Sequence[Team], history: IncidentHistory, enrichment: Enrichment) -> Discussion:
    """Every candidate team's opinion on the incident, with what monitoring found added to its text."""
    known = {team.id: team for team in teams}
    text = f"{incident.description}\n{incident.service}\n{enrichment.text}"
    neighbours = [
        neighbour
        for neighbour in history.similar(text, NEIGHBOURS, without=frozenset({incident.id}))
        if neighbour.incident.owner in known
    ]
    votes = {team: vote for team, vote in history_votes(neighbours).items() if team in known}
    fits = matches(text, teams)
    owners = _owners({incident.service: 1.0}, teams)
    located = _owners(enrichment.services, teams)
    group = discussion_group(votes, fits, [*located, *owners])
    arguments = {team: _arguments(known[team], incident, votes, fits, owners, located) for team in group}
    return Discussion(
        tuple(Opinion(known[team], arguments[team]) for team in group),
        frozenset(argument.ground for found in arguments.values() for argument in found),
        neighbours[0].similarity if neighbours else 0.0,
        max(vote.share for vote in votes.values()) / sum(vote.share for vote in votes.values()) if votes else 0.0,
    )


@dataclass(frozen=True, slots=True)
class _Owned:
    service: str
    share: float


def _owners(services: Mapping[str, float], teams: Sequence[Team]) -> dict[str, _Owned]:
    """Team id → the strongest of these services that it owns, and its share of all their strength, strongest first."""
    total = max(1.0, sum(services.values()))
    owned: dict[str, _Owned] = {}
    for team in teams:
        own = {service: strength for service, strength in services.items() if service in team.services}
        if own:
            owned[team.id] = _Owned(max(own, key=lambda service: own[service]), sum(own.values()) / total)
    return dict(sorted(owned.items(), key=lambda item: (-item[1].share, item[0])))


def _arguments(
    team: Team,
    incident: Incident,
    votes: Mapping[str, HistoryVote],
    fits: Mapping[str, DocumentMatch],
    owners: Mapping[str, _Owned],
    located: Mapping[str, _Owned],
) -> tuple[Argument, ...]:
    found: list[Argument] = []
    if place := located.get(team.id):
        found.append(Argument(Ground.MONITORING, place.share, f"monitoring points at {place.service}, which it owns"))
    if team.id in owners:
        found.append(Argument(Ground.OWNERSHIP, owners[team.id].share, f"owns service {incident.service}"))
    if (vote := votes.get(team.id)) and vote.incidents:
        found.append(Argument(Ground.HISTORY, vote.share, _history_reason(vote, votes)))
    if fit := fits.get(team.id):
        share = fit.score / sum(match.score for match in fits.values())
        found.append(Argument(Ground.DOCUMENT, share, f"its document speaks of {', '.join(fit.words)}"))
    return tuple(found)


def _history_reason(vote: HistoryVote, votes: Mapping[str, HistoryVote]) -> str:
    """“3 of the 5 most similar incidents: INC-0101, …”"""
    all_voting = sorted(
        (neighbour for other in votes.values() for neighbour in other.incidents),
        key=lambda neighbour: -neighbour.similarity,
    )
    nearest = [neighbour for neighbour in all_voting[:5] if neighbour in vote.incidents]
    ids = ", ".join(neighbour.incident.id for neighbour in vote.incidents[:SHOWN_INCIDENTS])
    if not nearest:
        return f"owned similar incidents: {ids}"
    return f"owned {len(nearest)} of the {len(all_voting[:5])} most similar incidents: {ids}"
