"""Choose the teams of the discussion by the votes of similar incidents and failing files (Triangle, Algorithm 1).

A team's function document claims words as its own, and disowns others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import log

from core.knowledge.terms import terms
from core.model.findings import Neighbour
from core.model.team import CodeOwners, Team
from core.rca.log_lines import frames

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
    by_history = candidates_from_history(votes, learned, removed)
    by_document = _best({team: match.score for team, match in matches.items()}, FROM_DOCUMENTS, removed)
    in_turn = [team for pair in zip(by_history, by_document, strict=False) for team in pair]
    ranked = [*in_turn, *by_history, *by_document]
    if learned:
        ranked.sort(key=lambda team: -learned[team])
    return list(dict.fromkeys([*(team for team in named if team not in removed), *ranked]))[:GROUP]


def candidates_from_history(
    votes: Mapping[str, HistoryVote], learned: Mapping[str, float], removed: frozenset[str] = frozenset()
) -> list[str]:
    """Return the FROM_HISTORY teams that owned most of the similar incidents (Algorithm 1, step 1), best first."""
    return _best(learned or {team: vote.share for team, vote in votes.items()}, FROM_HISTORY, removed)


def _best(scores: Mapping[str, float], count: int, removed: frozenset[str]) -> list[str]:
    return sorted(scores.keys() - removed, key=lambda team: (-scores[team], team))[:count]


PROFILE_CACHE = 1_024  # documents whose profile is remembered
DISOWNED_WEIGHT = 0.5  # weight of a disowned word, relative to a claimed one
SHOWN_WORDS = 4  # words of the incident named in a match

_PUNCTUATION = ".,;:!?()[]{}<>\"'`“”"
_HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)
_TURNS_AWAY = re.compile(r"\b(not|n't|never|out of scope|outside|elsewhere|others?|only look)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DocumentProfile:
    """The terms of the sections about the team's work, and of those about work that is not the team's.

    `text` is the text about the team's work, in lower case.
    """

    claimed: frozenset[str]
    disowned: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True)
class DocumentMatch:
    """The fit of a team's document to an incident: `score` in [0, 1], and the rarest words that both contain.

    A word that fits in another form (“rises”, “rising”) counts for the score, but is not among the `words`.
    """

    score: float
    words: tuple[str, ...]


@lru_cache(maxsize=PROFILE_CACHE)
def profile(document: str) -> DocumentProfile:
    """Return the profile. A section with a negative heading (“We do not own”, “Not ours”) is disowned."""
    pieces = _HEADING.split(document)
    claimed, disowned = [pieces[0]], list[str]()
    for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
        (disowned if turns_away(heading) else claimed).append(body)
    text = "\n".join(claimed)
    return DocumentProfile(frozenset(terms(text)), frozenset(terms("\n".join(disowned))), text.casefold())


def turns_away(heading: str) -> bool:
    """Return whether a section with this heading lists work that is not the team's."""
    return bool(_TURNS_AWAY.search(heading))


def rarity(teams: Sequence[Team]) -> Mapping[str, float]:
    """Return the weight of every term that a team document claims. The fewer teams claim it, the more it weighs."""
    return _rarity(tuple(team.document for team in teams if team.document))


@lru_cache(maxsize=16)
def _rarity(documents: tuple[str, ...]) -> Mapping[str, float]:
    claims = Counter(term for document in documents for term in profile(document).claimed)
    return {term: log((1 + len(documents)) / count) for term, count in claims.items()}


def matches(text: str, teams: Sequence[Team]) -> dict[str, DocumentMatch]:
    """Return the matches by team id, for the teams whose document fits the incident's text at all.

    The fewer teams claim a word, the more it weighs (TF-IDF against the team documents, Triangle section 3.2). The
    score is the claimed share of the weight of all words that any team claims.
    """
    profiles = {team.id: profile(team.document) for team in teams if team.document}
    rare = rarity(teams)
    weights = {term: rare[term] for term in set(terms(text)) if term in rare}
    total = sum(weights.values())
    written = _as_written(text)
    by_team: dict[str, DocumentMatch] = {}
    for team_id, own in profiles.items():
        claimed = {term: weight for term, weight in weights.items() if term in own.claimed}
        disowned = sum(weight for term, weight in weights.items() if term in own.disowned)
        score = (sum(claimed.values()) - DISOWNED_WEIGHT * disowned) / total if total else 0.0
        if score > 0:
            rarest = sorted(claimed, key=lambda term: (-claimed[term], -len(term), term))
            words = (
                word
                for term in rarest
                for word in written[term]
                if re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", own.text)
            )
            by_team[team_id] = DocumentMatch(score, tuple(islice(dict.fromkeys(words), SHOWN_WORDS)))
    return by_team


def _as_written(text: str) -> Mapping[str, Sequence[str]]:
    """Return each term of a text with its words, as they are written."""
    written: defaultdict[str, list[str]] = defaultdict(list)
    for word in dict.fromkeys(word.strip(_PUNCTUATION) for word in text.split()):
        for term in terms(word):
            if any(c.isalpha() for c in word):
                written[term].append(word)
    return written
