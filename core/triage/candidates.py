"""Choose the teams of the discussion by the votes of similar incidents and failing files (Triangle, Algorithm 1)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.model.catalogue import CodeOwners
from core.model.past_incident import Neighbour
from core.rca.log_lines import frames
from core.triage.documents import DocumentMatch

FROM_HISTORY = 5  # K: candidates taken from similar past incidents
FROM_DOCUMENTS = 5  # N: candidates taken from team documents
GROUP = 5  # M: teams in the discussion

NEIGHBOURS = 25  # past incidents that vote
NOVELTY = 0.25  # similarity of an imagined incident without a team, so that weak similarity decides nothing
REASSIGNED_WEIGHT = 0.5  # share of a vote that a team loses if it passed on a similar incident
MAX_PATHS = 30  # files of one incident that vote

_ADDRESS = re.compile(r"\b\w{2,10}://\S{1,2000}")
_PATH = re.compile(r"(?<![\w/.@-])/?(?:[\w@.+-]{1,80}/){1,20}[\w@+-][\w@.+-]{0,78}\.[A-Za-z]\w{0,7}(?![\w/])")


@dataclass(frozen=True, slots=True)
class HistoryVote:
    """A team's share of the votes of similar incidents, in [0, 1], and its own incidents among them, nearest first."""

    share: float
    incidents: tuple[Neighbour, ...]


def history_votes(neighbours: Sequence[Neighbour]) -> dict[str, HistoryVote]:
    """Return the votes by team id. Every neighbour votes for its owner with the square of its similarity."""
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


@dataclass(frozen=True, slots=True)
class CodeVote:
    """A team's `share` of the votes of files, in (0, 1], and one of its files with the ownership rule."""

    share: float
    path: str
    rule: str


def paths_in(text: str) -> tuple[str, ...]:
    """Return the files that a text names, those of its stack traces first. Web addresses are ignored."""
    without_addresses = _ADDRESS.sub(" ", text)
    traced = (frame.path for frame in frames(text) if "/" in frame.path)
    named = (match[0] for match in _PATH.finditer(without_addresses))
    return tuple(dict.fromkeys([*traced, *named]))[:MAX_PATHS]


def code_votes(paths: Sequence[str], services: frozenset[str], code: Sequence[CodeOwners]) -> Mapping[str, CodeVote]:
    """Return the votes by team id. Each file has one vote, which its owners share; files without an owner have none.

    Only rules count of repositories that contain the code of one of `services`, or do not say which code they contain.
    """
    repositories = [each for each in code if not each.services or not services or each.services & services]
    votes: defaultdict[str, float] = defaultdict(float)
    shown: dict[str, tuple[str, str]] = {}
    for path in paths:
        owners = {
            owner: rule.pattern
            for each in repositories
            for rule in each.rules_for_traced(path)
            for owner in rule.owners
        }
        for owner, pattern in owners.items():
            votes[owner] += 1 / len(owners)
            shown.setdefault(owner, (path, pattern))
    total = sum(votes.values())
    return {team: CodeVote(vote / total, *shown[team]) for team, vote in votes.items()}


def discussion_group(
    votes: Mapping[str, HistoryVote],
    matches: Mapping[str, DocumentMatch],
    learned: Mapping[str, float],
    named: Iterable[str],
    removed: frozenset[str] = frozenset(),
) -> list[str]:
    """Return the ids of at most GROUP teams, without those `removed` in earlier hops (Algorithm 1).

    Those named by ownership or monitoring come first. If a model learned from the history, its probabilities choose the
    candidates from history and rank all of them; otherwise the best of the two lists alternate.
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
    """Return the FROM_HISTORY teams that owned most of the similar incidents (Algorithm 1, step 1), best first."""
    return _best(learned or {team: vote.share for team, vote in votes.items()}, FROM_HISTORY, removed)


def _best(scores: Mapping[str, float], count: int, removed: frozenset[str]) -> list[str]:
    return sorted(scores.keys() - removed, key=lambda team: (-scores[team], team))[:count]
