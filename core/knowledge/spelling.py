"""Correct misspelt words of a question, or extract known words from one in another language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from string import ascii_lowercase

import numpy as np

from core.knowledge.encoder import TermStatistics
from core.knowledge.terms import STOP_WORDS, term_number, terms_of, words

SHORTEST = 3  # minimum characters of a misspelt word
SHORT = 4  # maximum characters of a word that may be a misspelt stop word
FOREIGN_WORDS = 2  # function words that identify another language

# Function words and common verbs of German, French and Spanish that are neither English words nor names of tools.
_FOREIGN = frozenset(
    "wie wer wem wen wann warum wieso welche welcher welches welchen wozu wohin woher wieviel ich du wir ihr sie das der den "
    "dem ein eine einen einem einer und oder nicht ist sind wird werden wurde kann können muss müssen soll sollte darf dürfen "
    "habe haben für von vom zum zur mit bei nach aus auf über unter lange viele gibt es mein meine unser unsere zurück oft "
    "bedeutet heißt läuft dauert macht mache beginnt endet passiert gehört brauche brauchen finde findet bekomme komme "
    "pourquoi quand quel quelle quels quelles qui que où est sont le les une du dans pour avec je nous vous faut peut "
    "combien faire fait un dois doit puis être quoi "
    "cómo qué quién cuándo dónde cuál cuáles cuánto cuántos cuánta por para las una del el es puedo hacer hago está están "
    "como tiene".split()
)
# Those that identify another language on their own, if there is no English function word.
_TELLING = frozenset(
    "wie wer wem wann warum wieso welche welcher welches wieviel darf bedeutet heißt pourquoi quand quel quelle combien cómo "
    "qué quién cuándo dónde cuál cuánto".split()
)
# Words of several languages.
_SHARED = frozenset("was die in an am so war will hat man des a no me son on comment".split())


_PARTS = re.compile(r"([-_])")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A corrected query. `corrected` maps misspelt words to their readings; `foreign`: it is not in English."""

    query: str
    corrected: dict[str, str] = field(default_factory=dict[str, str])
    foreign: bool = False


def spelt(query: str, statistics: TermStatistics) -> Spelling:
    """Return the query with unknown words replaced by words of the corpus that are one typo away.

    The first letter of a word is assumed to be right. A question in another language is reduced to words of the corpus.
    """
    query_words = words(query)
    if is_foreign(query_words, statistics):
        says_nothing = _FOREIGN | _SHARED
        kept = [word for word in query_words if word.lower() not in says_nothing and _frequency(word, statistics)]
        return Spelling(" ".join(kept), foreign=True)
    corrected = {
        word: corpus_word
        for word in dict.fromkeys(query_words)
        if (corpus_word := _respelt(word, statistics)).lower() != word.lower()
    }
    for word, corpus_word in corrected.items():
        query = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", lambda _, by=corpus_word: by, query)
    return Spelling(
        query, {word: corpus_word for word, corpus_word in corrected.items() if corpus_word not in STOP_WORDS}
    )


def is_foreign(query_words: list[str], statistics: TermStatistics) -> bool:
    """Return whether a question is in another language than English.

    A word with non-English letters that the corpus does not contain counts as foreign.
    """
    lower = [word.lower() for word in query_words]
    english = sum(word in STOP_WORDS and word not in _FOREIGN and word not in _SHARED for word in lower)
    foreign = sum(
        word in _FOREIGN or (word.isalpha() and not word.isascii() and not _frequency(word, statistics))
        for word in lower
    )
    return foreign > english and (foreign >= FOREIGN_WORDS or not _TELLING.isdisjoint(lower))


def _respelt(word: str, statistics: TermStatistics) -> str:
    """Return the corrected word. An identifier that the corpus does not contain is corrected part by part."""
    parts = [word] if _is_held(word, statistics) else _PARTS.split(word)
    return "".join(
        (_corrected(part.lower(), statistics) or part) if _may_be_misspelt(part, statistics) else part for part in parts
    )


def _is_held(word: str, statistics: TermStatistics) -> bool:
    """Return whether the corpus contains an identifier as a whole."""
    return int(statistics.frequencies(np.array([term_number(word.lower())], np.uint32))[0]) > 0


def _may_be_misspelt(word: str, statistics: TermStatistics) -> bool:
    is_word = word.isascii() and word.isalpha() and word[1:].islower() and len(word) >= SHORTEST
    return is_word and word.lower() not in STOP_WORDS and not _frequency(word, statistics)


def _frequency(word: str, statistics: TermStatistics) -> int:
    return _frequencies([word], statistics)[0]


def _frequencies(of_words: Sequence[str], statistics: TermStatistics) -> list[int]:
    """Return the frequency of the most frequent term of each word; 0 for a word without terms."""
    numbers = [[term_number(term) for term in terms_of(word)] for word in of_words]
    frequencies: Iterator[int] = iter(statistics.frequencies(np.array([*chain(*numbers)], np.uint32)).tolist())
    return [max(islice(frequencies, len(each)), default=0) for each in numbers]


def _corrected(word: str, statistics: TermStatistics) -> str | None:
    """Return the most frequent word of the corpus that is one typo away; a stop word for a short one; None if none."""
    candidates = sorted(_slips(word))
    if len(word) <= SHORT and (stop := next((each for each in candidates if each in STOP_WORDS), None)):
        return stop
    ranked = zip(candidates, _frequencies(candidates, statistics), strict=True)
    best, frequency = max(ranked, key=itemgetter(1), default=(word, 0))
    return best if frequency else None


def _slips(word: str) -> set[str]:
    """Return every word that is one typo away: a letter after the first is omitted, added, changed or swapped."""
    parts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    left_out = {before + after[1:] for before, after in parts if after}
    swapped = {before + after[1] + after[0] + after[2:] for before, after in parts if len(after) > 1}
    changed = {before + letter + after[1:] for before, after in parts if after for letter in ascii_lowercase}
    added = {before + letter + after for before, after in parts for letter in ascii_lowercase}
    return {each for each in left_out | swapped | changed | added if len(each) >= SHORTEST} - {word}
