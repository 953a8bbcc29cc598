"""The Triage Decider: which teams take part in the discussion (Triangle, Algorithm 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.model.incident import Neighbour
from core.triage.documents import DocumentMatch

FROM_HISTORY = 5  # K: candidates taken from similar past incidents
FROM_DOCUMENTS = 5  # N: candidates taken from team documents
GROUP = 5  # M: teams in the discussion

NEIGHBOURS = 25  # past incidents that vote
NOVELTY = 0.25  # similarity of an imagined incident of no team, that votes too: weak similarity decides nothing
REASSIGNED_WEIGHT = 0.5  # of a vote, that a team loses where a similar incident was passed on by it


@dataclass(frozen=True, slots=True)
class HistoryVote:
    """A team's share of the votes of similar incidents, in [0, 1], and its own incidents among them, nearest first."""

    share: float
    incidents: tuple[Neighbour, ...]


def history_votes(neighbours: Sequence[Neighbour]) -> dict[str, HistoryVote]:
    """Return team id → vote. Every neighbour votes for its owner with the square of its similarity."""
    votes: defaultdict[str, float] = defaultdict(float)
    owned: defaultdict[str, list[Neighbour]] = defaultdict(list)
    for neighbour in neighbours:
        weight = neighbour.similarity**2
        votes[neighbour.incident.owner] += weight
        owned[neighbour.incident.owner].append(neighbour)
        for team in set(neighbour.incident.reassignments) - {neighbour.incident.owner}:
            votes[team] -= REASSIGNED_WEIGHT * weight
    total = NOVELTY**2 + sum(neighbour.similarity**2 for neighbour in neighbours)
    return {team: HistoryVote(vote / total, tuple(owned[team])) for team, vote in votes.items() if vote > 0}


def discussion_group(
    votes: Mapping[str, HistoryVote],
    matches: Mapping[str, DocumentMatch],
    learned: Mapping[str, float],
    named: Iterable[str],
    removed: frozenset[str] = frozenset(),
) -> list[str]:
    """Return the ids of at most GROUP teams, without those `removed` in earlier hops (Algorithm 1).

    Those named by ownership or monitoring come first. Where a model learned from the history, its probabilities choose
    the candidates from history and rank them all; otherwise the best of the two lists take turns.
    """
    from_documents = {team: match.score for team, match in matches.items()}
    by_history = candidates_from_history(votes, learned, removed)
    by_document = _best(from_documents, FROM_DOCUMENTS, removed)
    in_turn = [team for pair in zip(by_history, by_document, strict=False) for team in pair]
    ranked = [*in_turn, *by_history, *by_document]
    if learned:
        ranked.sort(key=lambda team: -learned[team])
    kept = [team for team in named if team not in removed]
    return list(dict.fromkeys([*kept, *ranked]))[:GROUP]


def candidates_from_history(
    votes: Mapping[str, HistoryVote], learned: Mapping[str, float], removed: frozenset[str] = frozenset()
) -> list[str]:
    """Return the FROM_HISTORY teams that most such incidents belonged to (Algorithm 1, step 1), best first."""
    return _best(learned or {team: vote.share for team, vote in votes.items()}, FROM_HISTORY, removed)


def _best(scores: Mapping[str, float], count: int, removed: frozenset[str]) -> list[str]:
    return sorted(scores.keys() - removed, key=lambda team: (-scores[team], team))[:count]
