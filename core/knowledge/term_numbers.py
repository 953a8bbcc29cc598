"""Text → the numbers of its terms: what is stored and compared instead of words."""

from __future__ import annotations

import zlib
from functools import lru_cache

from core.knowledge.terms import WORD_CACHE, terms_of, words


@lru_cache(maxsize=WORD_CACHE)
def term_number(term: str) -> int:
    """The term's place in every sparse vector: an unsigned 32-bit hash, the same on every machine."""
    return zlib.crc32(term.encode())


def term_numbers(text: str) -> list[int]:
    """The number of every term of a text in order, repeated as often as it occurs."""
    return [number for word in words(text) for number in _numbers_of(word)]


@lru_cache(maxsize=WORD_CACHE)
def _numbers_of(word: str) -> tuple[int, ...]:
    return tuple(map(term_number, terms_of(word)))
