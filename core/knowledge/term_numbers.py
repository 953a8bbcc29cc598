"""Text → the numbers of its terms: what is stored and compared instead of words."""

from __future__ import annotations

import zlib
from functools import lru_cache

from core.knowledge.terms import WORD_CACHE, forms_of, terms_of, words

_WRITTEN = "="  # which no term begins with


@lru_cache(maxsize=WORD_CACHE)
def term_number(term: str) -> int:
    """The term's place in every sparse vector: an unsigned 32-bit hash, the same on every machine."""
    return zlib.crc32(term.encode())


def term_numbers(text: str) -> list[int]:
    """The number of every term of a text in order, repeated as often as it occurs."""
    return [number for word in words(text) for number in _numbers_of(word)]


def placed_term_numbers(text: str) -> tuple[list[int], list[int]]:
    """The same, and for each of them the position of its word (see `Token`)."""
    numbers: list[int] = []
    positions: list[int] = []
    for position, word in enumerate(words(text)):
        found = _numbers_of(word)
        numbers += found
        positions += [position] * len(found)
    return numbers, positions


def form_numbers(text: str) -> list[int]:
    """The number of every word of a text as it is written (see `forms_of`): others than those of terms."""
    return [number for word in words(text) for number in _form_numbers_of(word)]


@lru_cache(maxsize=WORD_CACHE)
def _form_numbers_of(word: str) -> tuple[int, ...]:
    return tuple(term_number(f"{_WRITTEN}{form}") for form in forms_of(word))


@lru_cache(maxsize=WORD_CACHE)
def _numbers_of(word: str) -> tuple[int, ...]:
    return tuple(map(term_number, terms_of(word)))
