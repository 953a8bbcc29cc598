"""Split Markdown into blocks, such as paragraphs, list items, tables and code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote

from core.model.document import AnchorStyle


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
ITEM = re.compile(r"^(?P<indent>\s*+)(?P<mark>[-*+•]|\d{1,3}[.)])[ \t]+(?=\S)")  # what a list item begins with
_INDENTS = ("    ", "\t")  # of code
LINK_TARGET = r"\((?:[^()]*+(?:\([^()]*+\)[^()]*+)*+\)|[^()]*+\([^()]*+\))"  # one level of parentheses
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{LINK_TARGET}")
_BAR = re.compile(r"(?<!\\)\|")
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


def table_rows(table: str) -> list[list[str]]:
    """Return the cells of each row of a table, beginning with its header, which is empty if it has none.

    An escaped bar does not separate cells.
    """
    lines = table.splitlines()
    rows = [
        [cell.strip().replace(r"\|", "|") for cell in row[1 : None if row[-1] else -1]]
        for row in (_BAR.split(line.strip()) for line in lines)
    ]
    return [rows[0], *rows[2:]] if has_header(lines) else [[], *rows]


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
    if item := ITEM.match(line):
        return BlockKind.LIST_ITEM, _item_end(lines, start, len(item["indent"]))
    if _is_row(line):
        return BlockKind.TABLE, _run_end(lines, start, _is_row)
    if line.startswith(_INDENTS):
        return BlockKind.CODE, _run_end(lines, start, lambda row: row.startswith(_INDENTS))
    if start + 1 < len(lines) and _UNDERLINE.match(lines[start + 1]):
        return BlockKind.HEADING, start + 2
    return BlockKind.PARAGRAPH, _run_end(lines, start, lambda row: bool(row.strip()) and not _starts_block(row))


def _starts_block(line: str) -> bool:
    return _is_row(line) or any(pattern.match(line) for pattern in (_FENCE, _HEADING, ITEM))


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _run_end(lines: list[str], start: int, belongs: Callable[[str], bool]) -> int:
    end = start + 1
    while end < len(lines) and belongs(lines[end]):
        end += 1
    return end


def _fence_end(lines: list[str], start: int) -> int:
    """Return the index after the closing fence of the code that starts at a line; the end of the text if there is none."""
    fence = _FENCE.match(ITEM.sub("", lines[start]))
    mark = fence[1] if fence else "```"
    return next((index + 1 for index in range(start + 1, len(lines)) if _is_closing(lines[index], mark)), len(lines))


def _is_closing(line: str, mark: str) -> bool:
    """Return whether a line ends the code that the mark begins."""
    return line.strip().startswith(mark) and not line.strip().strip(mark[0])


def _item_end(lines: list[str], start: int, indent: int) -> int:
    """Return the index after a list item: deeper lines, code fences, blank lines between them, and lazy lines."""
    end = _fence_end(lines, start) if _FENCE.match(ITEM.sub("", lines[start])) else start + 1
    while end < len(lines):
        line = lines[end]
        if not line.strip():
            following = next((later for later in lines[end + 1 :] if later.strip()), "")
            if _depth(following) <= indent or ITEM.match(following):
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
