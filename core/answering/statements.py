"""Passages → statements: the smallest pieces that can be quoted and still make sense."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.knowledge.document import DocumentKind, Passage
from core.knowledge.markdown import Block, BlockKind, blocks, plain

MAX_STATEMENT = 700  # characters; a longer piece of code or item is cut at a line end

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]*_`]*\s+(?=[\"'(\[*_`]*[A-Z0-9])|(?<=[。！？])|\n{2,}")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|cf|incl)|\b[A-Z])\.[\"')]*\s*$", re.IGNORECASE)
_MARKER = re.compile(r"^\s*(?:[-*+•]|(\d{1,3})[.)])[ \t]+")
_THREAD_PREFIX = re.compile(r"^(?:Message: |This message has the following responses:$)")


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` is verbatim but for list markers and table bars. `lead_in` is the sentence that introduces it, if any.

    `order` is its place in the passage, `group` the list or paragraph that it belongs to, `step` its number in an
    ordered list (0 if in none).
    """

    passage: Passage
    kind: BlockKind
    text: str
    heading: str
    lead_in: str
    order: int
    group: int
    step: int = 0


def statements(passage: Passage) -> list[Statement]:
    """Every statement of a passage in order; headings only name what stands below them."""
    found: list[Statement] = []
    heading, lead_in, group, previous = passage.heading, "", 0, None
    for block in blocks(passage.text):
        if block.kind is BlockKind.HEADING:
            heading, lead_in, previous = block.heading, "", None
            continue
        if block.kind is not previous or block.kind is not BlockKind.LIST_ITEM:
            group += 1
        introduced = lead_in if block.kind is not BlockKind.PARAGRAPH else ""
        for text, step in _pieces(block, passage.kind):
            found.append(Statement(passage, block.kind, text, heading, introduced, len(found), group, step))
        if block.kind is BlockKind.PARAGRAPH:
            lead_in = found[-1].text if found and found[-1].text.rstrip().endswith(":") else ""
        previous = block.kind
    return found


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, each with its closing mark."""
    result: list[str] = []
    for piece in _SENTENCE_END.split(text):
        if not piece.strip():
            continue
        if result and _ABBREVIATION.search(result[-1]):
            result[-1] = f"{result[-1]} {piece.strip()}"
        else:
            result.append(piece.strip())
    return result


def _pieces(block: Block, kind: DocumentKind) -> Iterator[tuple[str, int]]:
    if block.kind is BlockKind.LIST_ITEM:
        marker = _MARKER.match(block.text)
        yield _bounded(_MARKER.sub("", block.text)), int(marker[1]) if marker and marker[1] else 0
    elif block.kind is BlockKind.CODE:
        yield _bounded(block.text), 0
    elif block.kind is BlockKind.TABLE:
        yield from ((row, 0) for row in _rows(block.text))
    else:
        text = _THREAD_PREFIX.sub("", block.text) if kind is DocumentKind.THREAD else block.text
        yield from ((_bounded(" ".join(sentence.split())), 0) for sentence in sentences(text))


def _rows(table: str) -> Iterator[str]:
    """Each row with its cells named by the header."""
    rows = [[plain(cell) for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
    header, *body = [row for row in rows if not all(set(cell) <= set("-: ") for cell in row)] or [[]]
    for row in body:
        yield "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(header, row, strict=False) if cell)


def _bounded(text: str) -> str:
    text = text.strip()
    if len(text) <= MAX_STATEMENT:
        return text
    cut = text[: MAX_STATEMENT - 1]
    shorter = cut.rsplit("\n", 1)[0] if "\n" in cut else cut.rsplit(" ", 1)[0]
    return f"{shorter}\n```" if text.startswith("```") else f"{shorter}…"
