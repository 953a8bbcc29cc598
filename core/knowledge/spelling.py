"""A question with misspelt words, or in another language → the words that the corpus can be searched for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from string import ascii_lowercase

import numpy as np

from core.knowledge.encoder import TermStatistics
from core.knowledge.terms import STOP_WORDS, term_number, terms_of, words

SHORTEST = 3  # characters of a word that is taken for a misspelt one
SHORT = 4  # characters up to which a word is rather a misspelt stop word
FOREIGN_WORDS = 2  # function words of another language that show that a question is in it

# Function words and common verbs of German, French and Spanish that are no English words, nor names of tools.
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
# Of these, the ones that show by themselves, where no English function word stands beside them, which language it is.
_TELLING = frozenset(
    "wie wer wem wann warum wieso welche welcher welches wieviel darf bedeutet heißt pourquoi quand quel quelle combien cómo "
    "qué quién cuándo dónde cuál cuánto".split()
)
_SHARED = frozenset(
    "was die in an am so war will hat man des a no me son on comment".split()
)  # words of several languages


_PARTS = re.compile(r"([-_])")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A corrected query. `query` is what to search for. `corrected` maps each misspelt word to what it was taken for, empty for a word that says
    nothing. `foreign`: the question is in another language than English.
    """

    query: str
    corrected: dict[str, str] = field(default_factory=dict[str, str])
    foreign: bool = False


def spelt(query: str, statistics: TermStatistics) -> Spelling:
    """Return the query in words that the corpus holds, as far as one slip of the keyboard explains the others.

    The first letter of a word is taken for right. Of a question in another language, the words that the corpus holds are left.
    """
    asked = words(query)
    if is_foreign(asked, statistics):
        kept = [word for word in asked if _says_something(word) and _frequency(word, statistics)]
        return Spelling(" ".join(kept), foreign=True)
    corrected = {
        word: found for word in dict.fromkeys(asked) if (found := _respelt(word, statistics)).lower() != word.lower()
    }
    for word, found in corrected.items():
        query = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", lambda _, by=found: by, query)
    return Spelling(query, {word: found for word, found in corrected.items() if found not in STOP_WORDS})


def is_foreign(asked: list[str], statistics: TermStatistics) -> bool:
    """Return whether the words of a question are those of another language than English.

    A word with letters that English lacks, and that the corpus does not hold, counts as one of another language.
    """
    lower = [word.lower() for word in asked]
    english = sum(word in STOP_WORDS and word not in _FOREIGN and word not in _SHARED for word in lower)
    foreign = sum(
        word in _FOREIGN or (word.isalpha() and not word.isascii() and not _frequency(word, statistics))
        for word in lower
    )
    return foreign > english and (foreign >= FOREIGN_WORDS or not _TELLING.isdisjoint(lower))


def _says_something(word: str) -> bool:
    return word.lower() not in _FOREIGN | _SHARED


def _respelt(word: str, statistics: TermStatistics) -> str:
    """The word, or what it was meant to be; of an identifier that the corpus lacks, part by part."""
    parts = [word] if _is_held(word, statistics) else _PARTS.split(word)
    return "".join(
        (_corrected(part.lower(), statistics) or part) if _may_be_misspelt(part, statistics) else part for part in parts
    )


def _is_held(word: str, statistics: TermStatistics) -> bool:
    """Return whether the corpus holds an identifier as a whole."""
    return int(statistics.frequencies(np.array([term_number(word.lower())], np.uint32))[0]) > 0


def _may_be_misspelt(word: str, statistics: TermStatistics) -> bool:
    is_word = word.isascii() and word.isalpha() and word[1:].islower() and len(word) >= SHORTEST
    return is_word and word.lower() not in STOP_WORDS and not _frequency(word, statistics)


def _frequency(word: str, statistics: TermStatistics) -> int:
    numbers = np.array(sorted(term_number(term) for term in terms_of(word)), np.uint32)
    return int(statistics.frequencies(numbers).max()) if numbers.size else 0


def _corrected(word: str, statistics: TermStatistics) -> str | None:
    """The most frequent word of the corpus that is one slip away; a stop word for a short one."""
    candidates = sorted(_slips(word))
    if len(word) <= SHORT and (stop := next((each for each in candidates if each in STOP_WORDS), None)):
        return stop
    best = max(candidates, key=lambda each: _frequency(each, statistics), default=word)
    return best if _frequency(best, statistics) else None


def _slips(word: str) -> set[str]:
    """Return every word that one letter left out, added, changed or swapped with the next makes of this one, after the first."""
    parts = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]
    left_out = {before + after[1:] for before, after in parts if after}
    swapped = {before + after[1] + after[0] + after[2:] for before, after in parts if len(after) > 1}
    changed = {before + letter + after[1:] for before, after in parts if after for letter in ascii_lowercase}
    added = {before + letter + after for before, after in parts for letter in ascii_lowercase}
    return {each for each in left_out | swapped | changed | added if len(each) >= SHORTEST} - {word}
