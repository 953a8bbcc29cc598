"""Team function documents: the words that a team claims as its own, and those that it disowns."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import log

from core.knowledge.terms import terms
from core.model.team import Team

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
            words = (word for term in rarest for word in written[term] if _stands_in(word, own.text))
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


def _stands_in(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", text) is not None
