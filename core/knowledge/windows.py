"""A passage seen as overlapping windows of about a paragraph: an answer stands in one spot, not all over a passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.knowledge.document import Passage
from core.knowledge.lexical import K1, TITLE_WEIGHT, B
from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.statistics import term_number
from core.knowledge.terms import tokens

WINDOW_TERMS = 80  # terms after which a window is full
OVERLAP_TERMS = 25  # most terms at the end of a window that begin the next one
AVERAGE_LENGTH = 90.0  # terms of a usual window with its title and heading


@dataclass(frozen=True, slots=True)
class WindowedPassage:
    """`numbers[i]` with the BM25 weight `weights[i]` stands in window `windows[i]`; `count` windows in all.

    `text_numbers` are the terms of the text in order, `positions` the words that they belong to.
    """

    count: int
    windows: NDArray[np.intp]
    numbers: NDArray[np.uint32]
    weights: NDArray[np.float32]
    text_numbers: NDArray[np.uint32]
    positions: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Piece:
    """The terms of a block, and of the headings above it."""

    numbers: list[int]
    heading: tuple[int, ...]


def windowed(passage: Passage) -> WindowedPassage:
    """Cut a passage into windows. Title and heading count for every window below them."""
    pieces: list[_Piece] = []
    text_numbers: list[int] = []
    positions: list[int] = []
    heading: tuple[int, ...] = tuple(_numbers(passage.heading))
    offset = 0
    for block in blocks(passage.text):
        found = tokens(block.text)
        numbers = [term_number(term) for token in found for term in token.terms]
        text_numbers += numbers
        positions += [offset + token.position for token in found for _ in token.terms]
        offset += found[-1].position + 1 if found else 0
        if block.kind is BlockKind.HEADING:
            heading = tuple(numbers)
        pieces.append(_Piece(numbers, heading))
    title = Counter({number: TITLE_WEIGHT * n for number, n in Counter(_numbers(passage.title)).items()})
    counted = [_counted(window, title) for window in _grouped(pieces)] or [dict(title)]
    return WindowedPassage(
        count=len(counted),
        windows=np.repeat(np.arange(len(counted)), [len(row) for row in counted]),
        numbers=np.array([number for row in counted for number in row], np.uint32),
        weights=np.array([weight for row in counted for weight in _weights(row)], np.float32),
        text_numbers=np.array(text_numbers, np.uint32),
        positions=np.array(positions, np.int32),
    )


def _numbers(text: str) -> list[int]:
    return [term_number(term) for token in tokens(text) for term in token.terms]


def _grouped(pieces: Sequence[_Piece]) -> Iterator[Sequence[_Piece]]:
    start = 0
    while start < len(pieces):
        end, size = start, 0
        while end < len(pieces) and (end == start or size + len(pieces[end].numbers) <= WINDOW_TERMS):
            size += len(pieces[end].numbers)
            end += 1
        yield pieces[start:end]
        if end == len(pieces):
            return
        overlap, first = 0, end
        while first - 1 > start and overlap + len(pieces[first - 1].numbers) <= OVERLAP_TERMS:
            first -= 1
            overlap += len(pieces[first].numbers)
        start = first


def _counted(window: Sequence[_Piece], title: Counter[int]) -> dict[int, float]:
    counts = Counter[int](title)
    counts.update(window[0].heading)
    for piece in window:
        counts.update(piece.numbers)
    return dict(counts)


def _weights(counts: dict[int, float]) -> Iterator[float]:
    norm = K1 * (1 - B + B * sum(counts.values()) / AVERAGE_LENGTH)
    return (frequency * (K1 + 1) / (frequency + norm) for frequency in counts.values())
