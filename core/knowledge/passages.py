"""Split Markdown into blocks, such as paragraphs, list items, tables and code, and documents into passages of bounded size that
break none of these (Ericsson chatbot, section V-A).
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from core.model.document import IN_PART, AnchorStyle, Document, DocumentKind, Passage


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list item"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a document, verbatim. `heading` is the nearest heading at or above it, without markup.

    `repeat` is the number of earlier headings with the same text.
    """

    kind: BlockKind
    text: str
    heading: str = ""
    level: int = 0
    repeat: int = 0


_FENCE = re.compile(r"^\s*(`{3,}(?=[^`]*$)|~{3,})")  # with backticks after it, it is inline code
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]++(.*?)(?:(?<![ \t])[ \t]+(?:#+[ \t]*)?)?$")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-{3,})[ \t]*$")
_ITEM = re.compile(r"^(\s*)(?:[-*+•]|\d{1,3}[.)])[ \t]+(?=\S)")
_INDENTS = ("    ", "\t")  # of code
LINK_TARGET = r"\((?:[^()]*+(?:\([^()]*+\)[^()]*+)*+\)|[^()]*+\([^()]*+\))"  # one level of parentheses
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{LINK_TARGET}")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_MARKUP = re.compile(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])")


def blocks(text: str) -> list[Block]:
    """Return the blocks of a Markdown text in order. Every line that is not blank is in exactly one of them."""
    result: list[Block] = []
    heading, repeat = "", 0
    seen: Counter[str] = Counter()
    for kind, lines in _grouped(text.splitlines()):
        level = 0
        if kind is BlockKind.HEADING:
            match = _HEADING.match(lines[0])
            heading = plain(match[2] if match else lines[0])
            level = len(match[1]) if match else 1 if lines[1].lstrip().startswith("=") else 2
            repeat = seen[slug(heading)]
            seen[slug(heading)] += 1
        result.append(Block(kind, "\n".join(lines), heading, level, repeat))
    return result


def has_header(table: Sequence[str]) -> bool:
    """Return whether the first line of a table is a header, because the second one is a rule."""
    return len(table) > 1 and "-" in table[1] and set(table[1]) <= set("|:- \t")


def framed(block: Block) -> tuple[list[str], list[str], list[str]]:
    """Return the lines of a block: those with which every part of it must begin, its own, and those to end with.

    These are the header of a table and the fences of code.
    """
    lines = block.text.splitlines()
    if block.kind is BlockKind.TABLE and has_header(lines):
        return lines[:2], lines[2:], []
    if block.kind is BlockKind.CODE and (fence := _FENCE.match(lines[0])):
        is_closed = len(lines) > 1 and _is_closing(lines[-1], fence[1])
        return lines[:1], lines[1:-1] if is_closed else lines[1:], [fence[1]]
    return [], lines, []


def without_links(text: str) -> str:
    """Return the text with each link replaced by its words."""
    return _LINK.sub(r"\1", text)


def plain(text: str) -> str:
    """Return the text without inline markup, as a reader sees it."""
    return _MARKUP.sub("", without_links(text)).strip()


def slug(heading: str) -> str:
    """Return the heading's link target, as code forges form it: lower case, punctuation dropped, spaces to hyphens."""
    return _NOT_IN_SLUG.sub("", plain(heading).lower()).replace(" ", "-")


def anchor(style: AnchorStyle, title: str, heading: str, repeat: int = 0) -> str:
    """Return the fragment of a link to a heading. `repeat` is the number of earlier headings with the same text."""
    match style:
        case AnchorStyle.SLUG:
            return f"{slug(heading)}-{repeat}" if repeat else slug(heading)
        case AnchorStyle.HYPHENS:
            name = "-".join(plain(heading).split())
        case AnchorStyle.WITH_TITLE:
            name = "".join(f"{title}-{plain(heading)}".split())
    return quote(f"{name}.{repeat}" if repeat else name)


def _grouped(lines: list[str]) -> Iterator[tuple[BlockKind, list[str]]]:
    index = 0
    while index < len(lines):
        if not lines[index].strip():
            index += 1
            continue
        kind, end = _block_at(lines, index)
        kept = lines[index:end]
        while not kept[-1].strip():
            kept.pop()
        yield kind, kept
        index = end


def _block_at(lines: list[str], start: int) -> tuple[BlockKind, int]:
    """Return the kind of the block that starts at a line, and the index after its last line."""
    line = lines[start]
    if _FENCE.match(line):
        return BlockKind.CODE, _fence_end(lines, start)
    if _HEADING.match(line):
        return BlockKind.HEADING, start + 1
    if item := _ITEM.match(line):
        return BlockKind.LIST_ITEM, _item_end(lines, start, len(item[1]))
    if _is_row(line):
        return BlockKind.TABLE, _run_end(lines, start, _is_row)
    if line.startswith(_INDENTS):
        return BlockKind.CODE, _run_end(lines, start, lambda row: row.startswith(_INDENTS))
    if start + 1 < len(lines) and _UNDERLINE.match(lines[start + 1]):
        return BlockKind.HEADING, start + 2
    return BlockKind.PARAGRAPH, _run_end(lines, start, lambda row: bool(row.strip()) and not _starts_block(row))


def _starts_block(line: str) -> bool:
    return _is_row(line) or any(pattern.match(line) for pattern in (_FENCE, _HEADING, _ITEM))


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _run_end(lines: list[str], start: int, belongs: Callable[[str], bool]) -> int:
    end = start + 1
    while end < len(lines) and belongs(lines[end]):
        end += 1
    return end


def _fence_end(lines: list[str], start: int) -> int:
    """Return the index after the closing fence of the code that starts at a line; the end of the text if there is none."""
    fence = _FENCE.match(_ITEM.sub("", lines[start]))
    mark = fence[1] if fence else "```"
    return next((index + 1 for index in range(start + 1, len(lines)) if _is_closing(lines[index], mark)), len(lines))


def _is_closing(line: str, mark: str) -> bool:
    """Return whether a line ends the code that the mark begins."""
    return line.strip().startswith(mark) and not line.strip().strip(mark[0])


def _item_end(lines: list[str], start: int, indent: int) -> int:
    """Return the index after a list item: deeper lines, code fences, blank lines between them, and lazy lines."""
    end = _fence_end(lines, start) if _FENCE.match(_ITEM.sub("", lines[start])) else start + 1
    while end < len(lines):
        line = lines[end]
        if not line.strip():
            following = next((later for later in lines[end + 1 :] if later.strip()), "")
            if _depth(following) <= indent or _ITEM.match(following):
                break
            end += 1
        elif _FENCE.match(line) and _depth(line) > indent:
            end = _fence_end(lines, end)
        elif _starts_block(line) or (_depth(line) <= indent and not lines[end - 1].strip()):
            break
        else:
            end += 1
    return end


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


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
