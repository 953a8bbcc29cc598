"""Index terms: stemmed words, identifiers whole and split, CJK as character pairs.

By them, passages and queries are encoded as the vectors that the index stores and searches (BM25 as an inner product), and
misspelt words of a question are corrected.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import chain, islice, pairwise
from operator import itemgetter
from string import ascii_lowercase
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.model.document import Passage
from core.ports import EncodedPassage, SparseVector

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W_]+")


MAX_TERM_LENGTH = 64  # characters; longer runs are encoded data, which nobody searches for
WORD_CACHE = 200_000  # distinct words whose terms are kept in memory
TEXT_CACHE = 2_000  # texts whose distinct terms are kept in memory: some 20 MB

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTER = rf"[^\W_{_CJK}]"  # a letter or digit of any other script
_JOINED = r"(?:[._:/@+-]|_+)"  # between the parts of an identifier
_SUFFIX = r"(?:['’](?:s|t|re|ve|ll|d|m)\b)?"
_WORD = re.compile(rf"([{_CJK}]+|{_LETTER}+(?:{_JOINED}{_LETTER}+)*){_SUFFIX}")
_ASCII_WORD = re.compile(rf"([A-Za-z0-9]+(?:{_JOINED}[A-Za-z0-9]+)*){_SUFFIX}")  # the same for ASCII, twice as fast
_CJK_RUN = re.compile(f"[{_CJK}]")
_SEPARATOR = re.compile(r"[._:/@+-]+")
# a lower-case letter before an upper-case one; an acronym before a capitalised word (`OOM|Killed`)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

STOP_WORDS = frozenset(
    """a about above after again against all already also always am an and any anybody anyone anything are aren as at
    be because been before being below between both but by can cannot could couldn did didn do does doesn doing
    don down during each else everybody everyone everything few for from further get gets getting go goes going
    gone got had hadn happen happened happening happens has hasn have haven having he her here hers him his how
    i if in into is isn it its itself just know knows let ll long lot many may me might more most much must
    mustn my need needed needs no nor not nothing now of off often on once only or other our ours out over own
    please re same shall she should shouldn so some somebody someone something still such take taken takes
    taking tell than that the their theirs them then there these they thing things this those through to too
    took under until up us ve very want wanted wants was wasn way we were weren what when where which while who
    whom whose why will with won would wouldn yet you your yours""".split()
)

_stemmed: Callable[[str], str] = import_module("Stemmer").Stemmer("english", 0).stemWord  # 0: the cache is below


def terms(text: str) -> list[str]:
    """Return every term of a text in order, repeated as often as it occurs."""
    return [term for word in words(text) for term in terms_of(word)]


@lru_cache(maxsize=TEXT_CACHE)
def distinct_terms(text: str) -> frozenset[str]:
    """Return the distinct terms of a text. Cached, because many questions are compared with the same texts."""
    return frozenset(terms(text))


@lru_cache(maxsize=WORD_CACHE)
def term_number(term: str) -> int:
    """Return the term's index in every sparse vector: an unsigned 32-bit hash, the same on every machine."""
    return zlib.crc32(term.encode())


def term_numbers(text: str) -> list[int]:
    """Return the number of every term of a text in order, repeated as often as it occurs."""
    return [term_number(term) for term in terms(text)]


def words(text: str) -> list[str]:
    """Return the words of a text in order, as they are written: identifiers whole, each run of CJK as one word."""
    return _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(normalised(text))


def normalised(text: str) -> str:
    """Return the text with normalised compatibility forms (full-width letters, ligatures)."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=WORD_CACHE)
def terms_of(word: str) -> tuple[str, ...]:
    """Return the terms of one word; empty for a stop word."""
    if _CJK_RUN.match(word):
        return _character_pairs(word)
    parts = [part for part in _SEPARATOR.split(word) if part and len(part) <= MAX_TERM_LENGTH]
    word_terms = [word.lower()] if len(parts) > 1 and len(word) <= MAX_TERM_LENGTH else []
    for part in parts:
        pieces = _CAMEL.split(part)
        candidates = [part, *pieces] if len(pieces) > 1 else pieces
        word_terms += [_stem(candidate.lower()) for candidate in candidates if _carries_meaning(candidate)]
    return tuple(dict.fromkeys(word_terms))


def _character_pairs(run: str) -> tuple[str, ...]:
    """Return overlapping pairs, or a single character. Repeated pairs are kept, because they are term frequencies."""
    return (run,) if len(run) == 1 else tuple(run[index : index + 2] for index in range(len(run) - 1))


def _carries_meaning(part: str) -> bool:
    return part.lower() not in STOP_WORDS and (len(part) > 1 or part.isdigit())


def _stem(word: str) -> str:
    return _stemmed(word) if word.isascii() and word.isalpha() else word


@lru_cache(maxsize=10_000)
def word_parts(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, split at case, digits, hyphens, underscores and spaces."""
    return tuple(part.lower() for part in _PART.findall(name))


def holds_run(whole: Sequence[str], run: Sequence[str]) -> bool:
    """Return whether the words of `run` stand next to each other, in their order, in `whole`."""
    length = len(run)
    return any(tuple(whole[start : start + length]) == tuple(run) for start in range(len(whole) - length + 1))


FORMAT = 12  # increased by every change that makes stored data unusable: tokens, weights, splitting of documents
REFIT_SHARE = 0.2  # share of passages changed since the last fit from which the average length is measured again
K1 = 1.2  # saturation of repeated terms
B = 0.75  # discount of long passages, 0 to 1

# Chosen with headings and sentences of public documentation, each removed from its page and used as a query.
USUALLY_REPEATED = 0.4  # prior share of the passages with a term that repeat it
PRIOR_PASSAGES = 3  # weight of that prior, in passages


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The counts of the terms of a passage and its title: `numbers` are distinct and ascend, `counts` are above 0."""

    numbers: NDArray[np.uint32]
    counts: NDArray[np.int_]

    @classmethod
    def of(cls, passage: Passage) -> Self:
        every = np.array([*term_numbers(passage.text), *term_numbers(passage.title)], np.uint32)
        return cls(*np.unique(every, return_counts=True))

    @property
    def length(self) -> int:
        return int(self.counts.sum())

    def vector(self, average_length: float) -> SparseVector:
        """Return the saturated, length-normalised term frequencies of BM25 (Robertson and Zaragoza 2009, section 3.3)."""
        norm = K1 * (1 - B + B * self.length / average_length)
        weights = self.counts * (K1 + 1) / (self.counts + norm)
        return SparseVector(tuple(self.numbers.tolist()), tuple(weights.tolist()))


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """Document frequencies of a corpus, exact.

    `terms` are distinct ascending numbers, `counts[i] > 0` is the number of passages that contain `terms[i]`, and
    `repeated[i]` of those that contain it twice or more. There are `passages` passages, with `total_length` in all.
    """

    terms: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    counts: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    repeated: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    passages: int = 0
    total_length: float = 0.0

    @property
    def average_length(self) -> float:
        """Return the average length, above 0 even if no passage contains a term."""
        return self.total_length / self.passages if self.total_length else 1.0

    def changed(self, added: Sequence[TermCounts], removed: Sequence[TermCounts]) -> Self:
        """Return the statistics after these passages were added and removed."""
        came = [(held, sign) for sign, passages in ((1, added), (-1, removed)) for held in passages]
        numbers = np.concatenate([self.terms, *(held.numbers for held, _ in came)])
        terms, spots = np.unique(numbers, return_inverse=True)
        counts, repeated = (
            np.bincount(
                spots, np.concatenate([before, *(sign * (held.counts >= least) for held, sign in came)]), terms.size
            )
            for before, least in ((self.counts, 1), (self.repeated, 2))
        )
        kept = counts > 0
        return type(self)(
            terms[kept],
            counts[kept].astype(np.int32),
            repeated[kept].astype(np.int32),
            self.passages + len(added) - len(removed),
            self.total_length + sum(sign * held.length for held, sign in came),
        )

    def frequencies(self, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the number of passages that contain each term; 0 for an unknown one."""
        return self._looked_up(self.counts, numbers)

    def weights(self, numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the weight of each term, above 0. An unknown term weighs about as much as the rarest.

        The weight is the inverse document frequency of BM25 (Robertson and Zaragoza 2009, eq. 3.4, plus 1). It is
        higher for a term that passages tend to repeat, because they are about it (Church 2000, adaptation).
        """
        frequency = self.frequencies(numbers)
        idf = np.log1p((self.passages - frequency + 0.5) / (frequency + 0.5))
        repeated = self._looked_up(self.repeated, numbers) + USUALLY_REPEATED * PRIOR_PASSAGES
        return idf * np.sqrt(repeated / (frequency + PRIOR_PASSAGES))

    def _looked_up(self, values: NDArray[np.int32], numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        if not self.terms.size:
            return np.zeros(numbers.size, np.int32)
        spots = np.minimum(np.searchsorted(self.terms, numbers), self.terms.size - 1)
        return np.where(self.terms[spots] == numbers, values[spots], 0).astype(np.int32)


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """An encoded query. `lexical` contains the weights of those terms that are in any passage.

    `weights` maps every distinct term to its weight, and `counts` to its number in the query. `known` in [0, 1] is the
    share of the weight of terms in the corpus.
    """

    weights: Mapping[str, float]
    counts: Mapping[str, int]
    known: float
    lexical: SparseVector


@dataclass(frozen=True, slots=True)
class Encoder:
    """The term statistics of the corpus.

    `statistics` and `families`, the number of passages of each family, are always exact. `average_length`, on which
    stored vectors depend, is kept until more than REFIT_SHARE of the passages have changed. `settled` is False while
    all passages are rewritten after that. `embedder` is the name of the embedding model whose vectors are also stored,
    empty if there is none; `embedded` is False as long as passages lack them.
    """

    statistics: TermStatistics
    average_length: float
    changed_since_fit: int = 0
    settled: bool = True
    embedder: str = ""
    families: Mapping[str, int] = field(default_factory=dict[str, int])
    embedded: bool = True

    @classmethod
    def fitted(cls, passages: Sequence[Passage], embedder: str = "") -> Self:
        """Return the encoder of a corpus, which does not depend on the order of its passages."""
        statistics = TermStatistics().changed([*map(TermCounts.of, passages)], ())
        return cls(statistics, statistics.average_length, embedder=embedder, families=_families(passages))

    def updated(self, added: Sequence[Passage], removed: Sequence[Passage]) -> Self:
        """Return the encoder after these passages were added and removed. Vectors stored before stay valid."""
        return replace(
            self,
            statistics=self.statistics.changed([*map(TermCounts.of, added)], [*map(TermCounts.of, removed)]),
            changed_since_fit=self.changed_since_fit + max(len(added), len(removed)),
            families=Counter(self.families) + _families(added) - _families(removed),
        )

    @property
    def outdated(self) -> bool:
        return self.changed_since_fit > REFIT_SHARE * max(1, self.statistics.passages)

    def encode_passage(self, passage: Passage) -> EncodedPassage:
        """Return the passage with its term weights and without an embedding."""
        return EncodedPassage(passage, TermCounts.of(passage).vector(self.average_length), np.empty(0, np.float32))

    def encode_query(self, text: str) -> EncodedQuery:
        # What passages write as one word, too: “roll back” is “rollback” in a command.
        neighbours = [(one, other) for one, other in pairwise(words(text.lower())) if _carries_meaning(one)]
        compounds = [f"{one}{other}" for one, other in neighbours if f"{one}{other}".isalpha()]
        held = [each for each, count in zip(compounds, _frequencies(compounds, self.statistics), strict=True) if count]
        own = Counter(terms(text))
        counts = own | Counter(terms(" ".join(held)))
        numbers = np.array([term_number(term) for term in counts], np.uint32)
        weights, is_known = self.statistics.weights(numbers), self.statistics.frequencies(numbers) > 0
        # A compound says what its words say already; a name that passages hold weighs no more than one word.
        weights[len(own) :] /= 2
        names = [terms_of(word) for word in words(text) if _is_held(word, self.statistics)]
        parts = {term: len(name) for name in names for term in name}
        weights /= [parts.get(term, 1) for term in counts]
        total = float(weights.sum())
        lexical = sorted(
            zip(numbers[is_known].tolist(), (weights * [*counts.values()])[is_known].tolist(), strict=True)
        )
        return EncodedQuery(
            dict(zip(counts, weights.tolist(), strict=True)),
            counts,
            float(weights[is_known].sum()) / total if total else 0.0,
            SparseVector(tuple(number for number, _ in lexical), tuple(weight for _, weight in lexical)),
        )


def _families(passages: Sequence[Passage]) -> Counter[str]:
    return Counter(passage.family for passage in passages)


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
        kept = [
            word
            for word in query_words
            if word.lower() not in _FOREIGN | _SHARED and _frequencies([word], statistics)[0]
        ]
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
        word in _FOREIGN or (word.isalpha() and not word.isascii() and not _frequencies([word], statistics)[0])
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
    return (
        word.isascii()
        and word.isalpha()
        and word[1:].islower()
        and len(word) >= SHORTEST
        and word.lower() not in STOP_WORDS
        and not _frequencies([word], statistics)[0]
    )


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
