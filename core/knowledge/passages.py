"""Split documents into passages of bounded size without breaking code or list items (Ericsson chatbot, section V-A)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.knowledge.markdown import Block, BlockKind, blocks, framed
from core.model.document import IN_PART, Document, DocumentKind, Passage

STEPS = 127  # of a dimension of a unit vector on either side of 0; the cosine stays right to about 0.01


PASSAGE_TOKENS = 800  # maximum per passage

_NAMESPACE = uuid.UUID("6f1c1f0e-6d53-5d1b-9c55-2f4f3c0b7a11")
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]")


def passages_of(document: Document) -> list[Passage]:
    """Return the passages of a document in order, numbered from 1; none for a document without text.

    A chat thread or a past incident is always one passage, because its parts explain each other.
    """
    if not document.text.strip():
        return []
    if document.kind is not DocumentKind.PAGE:
        return [_passage(document, document.content_hash, 1, document.text.strip())]
    content_hash = document.content_hash
    groups = _packed([piece for block in blocks(document.text) for piece in _bounded(block)])
    return [
        _passage(document, content_hash, number, "\n\n".join(block.text for block in group), group)
        for number, group in enumerate(groups, start=1)
    ]


def passage_id(document_id: str, number: int) -> str:
    """Return the id of a document's passage, the same on every machine."""
    return str(uuid.uuid5(_NAMESPACE, f"{document_id}\x00{number}"))


def token_count(text: str) -> int:
    """Return the number of words and punctuation marks, which approximates the tokens of any language model."""
    return len(_TOKEN.findall(text))


def _passage(document: Document, content_hash: str, number: int, text: str, group: Sequence[Block] = ()) -> Passage:
    headings = [*group[:1], *(block for block in group if block.kind is BlockKind.HEADING)]
    repeats = tuple(block.repeat for block in headings)
    return Passage(
        id=passage_id(document.id, number),
        document_id=document.id,
        number=number,
        title=document.title,
        heading=group[0].heading if group else "",
        text=text,
        family=document.family,
        kind=document.kind,
        url=document.url,
        owner=document.owner,
        updated_at=document.updated_at,
        readers=document.readers,
        content_hash=content_hash,
        part_urls=document.part_urls,
        anchors=document.anchors,
        missing=document.missing if content_hash.endswith(IN_PART) else (),
        repeats=repeats if any(repeats) else (),
    )


def _packed(pieces: Sequence[Block]) -> list[list[Block]]:
    """Return the blocks grouped into passages, as full as possible without dividing a section that fits into one."""
    groups: list[list[Block]] = []
    size = 0
    for piece in pieces:
        length = token_count(piece.text)
        if not groups or size + length > PASSAGE_TOKENS:
            last = _carried(groups[-1], PASSAGE_TOKENS - length) if groups else []
            if last:
                del groups[-1][-len(last) :]
            groups.append(last)
            size = sum(token_count(each.text) for each in last)
        groups[-1].append(piece)
        size += length
    return groups


def _carried(group: Sequence[Block], room: int) -> list[Block]:
    """Return the end of a group that belongs to the block after it: from its last headings on, if there is room."""
    is_heading = [block.kind is BlockKind.HEADING for block in group]
    starts = [place for place in range(1, len(group)) if is_heading[place] and not is_heading[place - 1]]
    last = list(group[starts[-1] :]) if starts else []
    return last if sum(token_count(block.text) for block in last) <= room else []


def _bounded(block: Block) -> Iterator[Block]:
    """Yield the block or, if it is larger than a passage, runs of its lines (or of its words, if necessary).

    Each run has the header or the fences of the whole, if these leave enough room.
    """
    if token_count(block.text) <= PASSAGE_TOKENS:
        yield block
        return
    opening, own, closing = framed(block)
    room = PASSAGE_TOKENS - token_count("\n".join((*opening, *closing)))
    if room < PASSAGE_TOKENS // 2:
        opening, own, closing, room = [], block.text.splitlines(), [], PASSAGE_TOKENS
    for run in _runs([piece for line in own for piece in _bounded_line(line, room)], room):
        yield Block(block.kind, "\n".join((*opening, *run, *closing)), block.heading, block.level, block.repeat)


def _runs(lines: Sequence[str], room: int) -> Iterator[list[str]]:
    """Yield groups of lines in order, each with at most `room` tokens."""
    kept: list[str] = []
    size = 0
    for line in lines:
        line_size = token_count(line)
        if kept and size + line_size > room:
            yield kept
            kept, size = [], 0
        kept.append(line)
        size += line_size
    yield kept


def _bounded_line(line: str, room: int) -> Iterator[str]:
    starts = [match.start() for match in _TOKEN.finditer(line)][::room]
    for begin, end in pairwise([0, *starts[1:], len(line)]):
        yield line[begin:end]


def packed(vectors: NDArray[np.float32]) -> bytes:
    """Return unit vectors, of one row or several, with one byte a dimension."""
    return np.rint(STEPS * vectors).astype(np.int8).tobytes()


def divided(meaning: bytes, count: int) -> list[bytes]:
    """Return packed vectors one by one."""
    size = len(meaning) // count
    return [meaning[start : start + size] for start in range(0, len(meaning), size)]


def cosines(passage: Passage, query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosine of each chunk of a passage with a query; none if the passage has no vectors of this length."""
    if not query.size or len(passage.meaning) % query.size:
        return np.empty(0, np.float32)
    return unpacked(passage, query.size) @ query


def unpacked(passage: Passage, dimensions: int) -> NDArray[np.float32]:
    """Return the vectors of a passage's chunks, one a row."""
    return np.frombuffer(passage.meaning, np.int8).reshape(-1, dimensions).astype(np.float32) / np.float32(STEPS)
