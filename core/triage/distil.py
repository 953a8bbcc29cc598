"""The Analyser: the incident in the words of the team documents, and its key phrases (Triangle, section 3.2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from core.knowledge.terms import terms
from core.model.team import Team
from core.triage.documents import rarity

MIN_TEXTS = 3  # past incidents that hold a word before it is known which words it goes with
MIN_ASSOCIATION = 0.35  # cosine of two words over past incidents, from which one stands for the other
KEY_PHRASES = 5  # of each kind

_PUNCTUATION = ".,;:!?()[]{}<>\"'`“”"
_NAME = re.compile(r"(?=.*[A-Za-z])(?=.*(?:\d|[_./:@\\-])).{3,64}$")  # how hosts, jobs, services and files are named


@dataclass(frozen=True, slots=True)
class Alignment:
    """Semantic alignment without a model: word of incidents → the word of the team documents that it goes with."""

    counterparts: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def fitted(cls, texts: Iterable[str], teams: Sequence[Team]) -> Self:
        """Learned from which words stand together in past incidents."""
        from scipy.sparse import csr_array

        rows = [sorted(set(terms(text))) for text in texts]
        frequencies = Counter(term for row in rows for term in row)
        kept = sorted(term for term, texts_with in frequencies.items() if texts_with >= MIN_TEXTS)
        place = {term: number for number, term in enumerate(kept)}
        claimed = rarity(teams)
        vocabulary = [place[term] for term in kept if term in claimed]
        others = [place[term] for term in kept if term not in claimed]
        if not vocabulary or not others:
            return cls()
        columns = [[place[term] for term in row if term in place] for row in rows]
        lengths = np.cumsum([0, *map(len, columns)])
        flat = np.array([column for row in columns for column in row], np.int32)
        held = csr_array((np.ones(len(flat), np.float32), flat, lengths), shape=(len(rows), len(kept)))
        counts = np.array([frequencies[term] for term in kept], np.float32)
        together = (held[:, others].T @ held[:, vocabulary]).tocoo()
        cosine = together.data / np.sqrt(counts[others][together.row] * counts[vocabulary][together.col])
        best: dict[str, str] = {}
        for number in np.argsort(-cosine, kind="stable"):
            if cosine[number] < MIN_ASSOCIATION:
                break
            best.setdefault(kept[others[together.row[number]]], kept[vocabulary[together.col[number]]])
        return cls(best)

    def aligned(self, text: str) -> str:
        """The text with the counterparts of its words after it."""
        found = dict.fromkeys(self.counterparts[term] for term in terms(text) if term in self.counterparts)
        return f"{text}\n{' '.join(found)}" if found else text


@dataclass(frozen=True, slots=True)
class KeyPhrases:
    """Words of the incident as written, the most telling first: where it fails, how, and what it takes to mend it."""

    location: tuple[str, ...]
    symptoms: tuple[str, ...]
    capability: tuple[str, ...]


def key_phrases(text: str, teams: Sequence[Team]) -> KeyPhrases:
    """Names of things are the location; words that team documents claim the capability, the rarest first; the symptoms
    are the other words, the most frequent first.
    """
    weights = rarity(teams)
    services = {service.casefold() for team in teams for service in team.services}
    words = [stripped for word in text.split() if (stripped := word.strip(_PUNCTUATION)) and terms(stripped)]
    location = [word for word in words if word.casefold() in services or _NAME.match(word)]
    named = set(location)
    plain = [word for word in words if word not in named]
    known = {word: max(weights.get(term, 0.0) for term in terms(word)) for word in plain}
    capability = sorted((word for word, weight in known.items() if weight), key=lambda word: -known[word])
    symptoms = Counter(word for word in plain if not known[word])
    return KeyPhrases(
        tuple(dict.fromkeys(location))[:KEY_PHRASES],
        tuple(word for word, _ in symptoms.most_common(KEY_PHRASES)),
        tuple(capability)[:KEY_PHRASES],
    )
