"""How close a clue is to what was asked about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.rca.tool_outputs.clue import Clue
from core.rca.tool_outputs.trouble import SECONDS

_GENERATED = re.compile(r"(?:-[a-f0-9]{6,10}|-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""The suffixes that Kubernetes gives to what it makes from a template: no vowels, and no digits that look like them."""

_KINDS = frozenset(terms("pod pods deployment service job cronjob node namespace app container default kubernetes"))

_SLOWNESS = frozenset(terms("slow slowness slowly latency latencies performance delay delayed lag lagging long behind"))

SLOW = 2.5  # how much more it counts that something took long, if it was asked why it is slow
LOOKED_AT = 0.55  # closeness of what a tool was asked about by name: whoever asked had a reason
ELSEWHERE = 0.3  # weight of what nobody asked about
NEAR = 0.3  # share of a name's words that a question must hold to mean it
UNNAMED = 0.4  # closeness of everything to a question that names nothing
MENTIONED = 0.9  # closeness of what an error on the right subject speaks of
MIN_NAME = 4  # characters of a name that is looked for in errors
NAMESPACE = 0.4  # closeness of what only shares its namespace with the question
WORDS = 0.15  # how much more a clue counts whose words are all those of the question


@dataclass(frozen=True, slots=True)
class Focus:
    """What a question is about: its words, and how close each subject is to them, in [0, 1]."""

    words: frozenset[str]
    closeness: Mapping[str, float]
    otherwise: float  # closeness of what has none

    def weight(self, clue: Clue) -> float:
        """How much a clue counts for this question, at least ELSEWHERE; above 1 if it speaks in its words."""
        close = self.closeness.get(clue.subject, self.otherwise)
        if clue.namespace and set(terms(clue.namespace)) - _KINDS and clue.namespace.lower() in self.words:
            close = max(close, NAMESPACE)
        if clue.targeted:
            close = LOOKED_AT + (1 - LOOKED_AT) * close
        said = set(terms(clue.statement)) - set(terms(clue.subject)) - _KINDS
        shared = len(said & self.words) / max(len(self.words), 1)
        slow = SLOW if self.words & _SLOWNESS and SECONDS.search(clue.statement) else 1.0
        return slow * (ELSEWHERE + (1 - ELSEWHERE) * close + WORDS * min(1.0, shared))

    def widened(self, clues: Iterable[Clue], subjects: Iterable[str]) -> Focus:
        """The focus with what these clues speak of: an error names what it could not reach."""
        names = {name: subject for subject in subjects if len(name := stem(subject)) >= MIN_NAME}
        spoken_of = {
            subject: MENTIONED
            for clue in clues
            for name, subject in names.items()
            if name != stem(clue.subject) and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", clue.statement)
        }
        families = {stem(subject) for subject in spoken_of}
        known = {subject: MENTIONED for subject in subjects if stem(subject) in families}
        return replace(
            self, closeness={**known, **{key: max(near, known.get(key, 0.0)) for key, near in self.closeness.items()}}
        )

    def asked_most(self, asked: Sequence[str], subjects: Iterable[str]) -> Focus:
        """The focus on what tools were asked about most often; unchanged if they were asked about nothing by name."""
        calls = Counter(stem(name) for name in asked)
        most = max(calls.values(), default=1)
        return replace(self, closeness={name: calls[stem(name)] / most for name in subjects if calls[stem(name)]})

    def means(self, subject: str) -> bool:
        """Whether the question names a subject, or none at all."""
        return not self.closeness or self.closeness.get(subject, self.otherwise) >= NEAR


def focus_on(question: str, subjects: Iterable[str]) -> Focus:
    """The focus of a question among the subjects that clues are about. The rarer a word of their names, the more it says.

    Closeness is relative to the subject that is nearest, unless none is near.
    """
    words = frozenset(terms(question))
    names = {subject: set(terms(stem(subject))) - _KINDS for subject in set(subjects)}
    families = {stem(subject): parts for subject, parts in names.items()}
    known = Counter(part for parts in families.values() for part in parts)
    raw = {
        subject: sum(1 / known[part] for part in parts & words) / sum(1 / known[part] for part in parts)
        if parts
        else 0.0
        for subject, parts in names.items()
    }
    best = max(raw.values(), default=0.0)
    if best < NEAR:
        return Focus(words, {}, UNNAMED)
    return Focus(words, {subject: near / best for subject, near in raw.items()}, 0.0)


def stem(name: str) -> str:
    """The name of what something was made from: “api-7d4b9c6f5d-x2x4z” → “api”."""
    return _GENERATED.sub("", name)
