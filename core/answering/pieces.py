"""Divide passages into pieces, the units that are shown: sentences, list items, table rows, lines of code and headings.

An embedding model reads a passage in chunks, each once: excerpts overlap, so that encoding each would repeat its passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.answering.statements import sentences, statements
from core.knowledge.markdown import Block, BlockKind, blocks, framed, has_header
from core.knowledge.passages import cosines
from core.knowledge.terms import terms
from core.model.document import DocumentKind, Passage

REMEMBERED = 1_000  # passages whose pieces are kept in memory: some 20 MB
LONG_ITEM = 60  # words of a list item from which it can be cut at a line end

_WORD = re.compile(r"(?<!\S)[^\w\s]*+\w\S*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, list item, table row, line of code or heading, verbatim.

    `block` and `section` are the numbers of its block and its heading within the passage. `opens` is True for the first
    piece of a block. `heading` is the text of its heading, `repeat` the number of earlier headings in the document with
    the same text, and `path` the terms of all headings above the piece.
    """

    text: str
    kind: BlockKind
    block: int
    section: int
    opens: bool
    heading: str
    repeat: int
    path: frozenset[str]
    terms: tuple[str, ...]
    words: int
    fence: str = ""

    @property
    def introduces(self) -> bool:
        """Return whether it only introduces the text after it."""
        return self.kind is BlockKind.HEADING or self.text.rstrip().endswith(":")


def word_count(text: str) -> int:
    """Return the number of words: runs without white space that contain a letter or digit."""
    return len(_WORD.findall(text))


@lru_cache(maxsize=REMEMBERED)
def pieces(passage: Passage) -> tuple[Piece, ...]:
    """Return every piece of a passage in order; for a chat thread or an incident, only its statements."""
    if passage.kind is not DocumentKind.PAGE:
        return tuple(
            Piece(each.text, each.kind, number, 0, True, each.heading, each.repeat, frozenset(), tuple(terms(each.text)),
                  word_count(each.text))
            for number, each in enumerate(statements(passage))
        )  # fmt: skip
    return tuple(_pieces_of(passage))


def joined(chosen: Sequence[Piece]) -> str:
    """Return neighbouring pieces as Markdown again, with a fence around each part of a code block."""
    parts: list[str] = []
    for before, piece in zip([None, *chosen[:-1]], chosen, strict=True):
        new = before is None or before.block != piece.block
        if new and before is not None:
            parts.append(before.fence and f"\n{before.fence}")
            both_items = before.kind is piece.kind is BlockKind.LIST_ITEM
            parts.append("\n" if both_items else "\n\n")
        elif before is not None:
            parts.append(" " if piece.kind is BlockKind.PARAGRAPH else "\n")
        if piece.fence and new:
            parts.append(f"{piece.fence}\n")
        parts.append(piece.text)
    if chosen and chosen[-1].fence:
        parts.append(f"\n{chosen[-1].fence}")
    return "".join(parts)


def _pieces_of(passage: Passage) -> Iterator[Piece]:
    heading, section, path = passage.heading, 0, [(0, passage.heading)] if passage.heading else []
    above = frozenset(terms(passage.heading))
    repeats = iter(passage.repeats)
    repeat = next(repeats, 0)
    for number, block in enumerate(blocks(passage.text)):
        if block.kind is BlockKind.HEADING:
            heading, section, repeat = block.heading, section + 1, next(repeats, 0)
            path = [*(each for each in path if each[0] < block.level), (block.level, heading)]
            above = frozenset(terms(" ".join(text for _, text in path)))
        for place, (text, fence) in enumerate(_texts(block)):
            piece_terms = tuple(terms(block.heading if block.kind is BlockKind.HEADING else text))
            yield Piece(
                text,
                block.kind,
                number,
                section,
                place == 0,
                heading,
                repeat,
                above,
                piece_terms,
                word_count(text),
                fence,
            )


def _texts(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the texts that a block is split into, each with its code fence (empty if none)."""
    lines = block.text.splitlines()
    match block.kind:
        case BlockKind.PARAGRAPH:
            yield from ((text, "") for text in sentences(block.text))
        case BlockKind.TABLE if has_header(lines) and len(lines) > 2:
            yield "\n".join(lines[:3]), ""
            yield from ((line, "") for line in lines[3:])
        case BlockKind.CODE:
            opening, own, _ = framed(block)
            yield from ((line, "```" if opening else "") for line in own if line.strip() or opening)
        case BlockKind.LIST_ITEM if word_count(block.text) > LONG_ITEM:
            yield from ((line, "") for line in lines if line.strip())
        case _:
            yield block.text, ""


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
