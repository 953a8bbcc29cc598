"""Divide passages into chunks, which an embedding model reads once each, and compare excerpts with a question by them.

Excerpts overlap, so that encoding each of them would read a passage several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.answering.pieces import REMEMBERED, Piece, joined, pieces
from core.knowledge.markdown import BlockKind
from core.knowledge.passages import cosines
from core.model.document import Passage

CHUNK_WORDS = 60  # maximum of a chunk of several pieces: about as much as a small embedding model reads


@lru_cache(maxsize=REMEMBERED)
def chunks(passage: Passage) -> tuple[tuple[int, int], ...]:
    """Return the start and the end of each chunk among the pieces of a passage: in order, and none is left out.

    A chunk consists of neighbouring pieces of one section.
    """
    all_pieces = pieces(passage)
    bounds: list[tuple[int, int]] = []
    start = words = 0
    for place, piece in enumerate(all_pieces):
        if place > start and (piece.section != all_pieces[start].section or words + piece.words > CHUNK_WORDS):
            bounds.append((start, place))
            start, words = place, 0
        words += piece.words
    return (*bounds, (start, len(all_pieces))) if all_pieces else ()


def chunk_texts(passage: Passage) -> list[str]:
    """Return the text of each chunk below its page's title and its heading; of a passage without any, all of it."""
    own = pieces(passage)
    return [_text(passage, own[start:end]) for start, end in chunks(passage)] or [passage.indexed_text]


def _text(passage: Passage, chosen: Sequence[Piece]) -> str:
    above = dict.fromkeys(filter(None, (passage.title, chosen[0].heading)))
    body = [piece for piece in chosen if piece.kind is not BlockKind.HEADING]
    return "\n".join([*above, joined(body)] if body else above)


@dataclass(frozen=True, slots=True)
class Nearness:
    """The cosines of a passage's chunks with a question; none if the passage has no vectors of the question's model."""

    bounds: Sequence[tuple[int, int]]
    cosines: NDArray[np.float32]

    @classmethod
    def of(cls, passage: Passage, vector: NDArray[np.float32]) -> Self:
        bounds, values = chunks(passage), cosines(passage, vector)
        return cls(bounds, values) if len(bounds) == len(values) else cls((), values[:0])

    def between(self, start: int, end: int) -> float:
        """Return the cosine of the nearest chunk that holds any of these pieces; 0 if none does."""
        held = [
            each for (first, last), each in zip(self.bounds, self.cosines, strict=True) if first < end and start < last
        ]
        return float(max(held, default=0.0))
