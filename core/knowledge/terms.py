"""Turn text into index terms: stemmed words, identifiers whole and split, CJK as character pairs."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module

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
