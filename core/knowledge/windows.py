"""A passage seen as overlapping windows of about a paragraph: an answer stands in one spot, not all over a passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.document import Passage
from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.term_numbers import placed_term_numbers, term_numbers

WINDOW_TERMS = 80  # terms after which a window is full
OVERLAP_TERMS = 25  # most terms at the end of a window that begin the next one
MAX_GAP = 255  # words; nothing looks at words that stand further apart

_HEADER = 3  # numbers that a stored passage begins with


@dataclass(frozen=True, slots=True)
class WindowedPassage:
    """The terms of a passage, and where its windows stand: all that a query is compared with.

    `numbers` are the terms of the title, up to `title_end`, of the heading above the passage, up to `text_start`, and
    then those of the text in order. `gaps[i]`, at most MAX_GAP, is by how many words the i-th term of the text stands
    after the one before it, 0 for terms of one word. Each row of `bounds` is a window: its text and its heading, as
    start and end of either in `numbers`.
    """

    numbers: NDArray[np.uint32]
    title_end: int
    text_start: int
    gaps: NDArray[np.uint8]
    bounds: NDArray[np.uint32]

    @property
    def title(self) -> NDArray[np.uint32]:
        return self.numbers[: self.title_end]

    @property
    def text(self) -> NDArray[np.uint32]:
        return self.numbers[self.text_start :]

    def to_bytes(self) -> bytes:
        header = np.array([self.title_end, self.text_start, len(self.bounds)], "<u4")
        parts = (header, self.bounds.astype("<u4"), self.numbers.astype("<u4"), self.gaps)
        return b"".join(part.tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """What `to_bytes` wrote. Raises ValueError for anything else."""
        title_end, text_start, count = np.frombuffer(stored, "<u4", _HEADER).tolist()
        start = 4 * (_HEADER + 4 * count)
        terms = (len(stored) - start + text_start) // 5  # each takes four bytes, and one more in the text
        gaps = 4 * terms + start
        return cls(
            np.frombuffer(stored, "<u4", terms, start),
            title_end,
            text_start,
            np.frombuffer(stored, np.uint8, terms - text_start, gaps),
            np.frombuffer(stored, "<u4", 4 * count, 4 * _HEADER).reshape(count, 4),
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Where the terms of a block stand, and those of the heading above it."""

    start: int
    end: int
    heading: tuple[int, int]

    @property
    def size(self) -> int:
        return self.end - self.start


def windowed(passage: Passage) -> WindowedPassage:
    """Cut a passage into windows. Title and heading count for every window below them."""
    numbers = term_numbers(passage.title)
    title_end = len(numbers)
    numbers += term_numbers(passage.heading)
    text_start = len(numbers)
    heading = (title_end, text_start)
    pieces: list[_Piece] = []
    positions: list[int] = []
    offset = 0
    for block in blocks(passage.text):
        found, places = placed_term_numbers(block.text)
        start = len(numbers)
        numbers += found
        positions += [offset + place for place in places]
        offset = positions[-1] + 1 if found else offset
        if block.kind is BlockKind.HEADING:
            heading = (start, len(numbers))
        pieces.append(_Piece(start, len(numbers), heading))
    windows = [(window[0].start, window[-1].end, *window[0].heading) for window in _grouped(pieces)]
    return WindowedPassage(
        np.array(numbers, np.uint32),
        title_end,
        text_start,
        np.minimum(np.diff(positions, prepend=0), MAX_GAP).astype(np.uint8),
        np.array(windows or [(text_start, text_start, title_end, title_end)], np.uint32),
    )


def _grouped(pieces: Sequence[_Piece]) -> Iterator[Sequence[_Piece]]:
    start = 0
    while start < len(pieces):
        end, size = start, 0
        while end < len(pieces) and (end == start or size + pieces[end].size <= WINDOW_TERMS):
            size += pieces[end].size
            end += 1
        yield pieces[start:end]
        if end == len(pieces):
            return
        overlap, first = 0, end
        while first - 1 > start and overlap + pieces[first - 1].size <= OVERLAP_TERMS:
            first -= 1
            overlap += pieces[first].size
        start = first
