"""Split passages into statements, the smallest parts that make sense when quoted, and into pieces, the units that are shown.

Pieces are sentences, list items, table rows, lines of code and headings. An embedding model reads a passage in chunks, each
once: excerpts overlap, so that encoding each would repeat its passage.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from core.knowledge.markdown import ITEM, Block, BlockKind, anchor, blocks, framed, has_header, plain, table_rows
from core.knowledge.passages import cosines
from core.knowledge.terms import terms
from core.model.answer import Citation
from core.model.conversation import PUBLIC
from core.model.document import DocumentKind, Passage
from core.model.text import MISSING_PART, SERVICE, split_thread, url_of

MAX_STATEMENT = 700  # characters; longer code is cut at a line end, a longer sentence at a word
MAX_QUOTE = 500  # characters of a citation's quote

REMEMBERED = 1_000  # passages whose statements are kept in memory: a few MB

MIN_TERMS = 4  # terms of an informative sentence in a chat, unless it contains code or a number

_LETTERS = re.compile(r"[^\W\d_]+")
_OBJECTION = re.compile(
    r"^\W*(?:no|nope|not|never|wrong|careful|caution|correction|actually|update|edit|do not|don['’]?t)\b"
    r"|\b(?:is|was|are) (?:wrong|outdated|obsolete|no longer|not (?:true|right|correct))\b|\b(?:do not|don['’]?t) do (?:that|this|it)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"""(?:(?<=[.!?])|(?<=[.!?]["')\]*_`])|(?<=[.!?]["')\]*_`]{2}))\s+(?=["'(\[*_]*[A-Z0-9`])"""
    r"|(?<=[!?])\s+|(?<=[。！？])|\n{2,}"
)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|approx|no|cf|incl)|\b[A-Z])\.[\"')]*\s*$", re.IGNORECASE)
_QUESTION = re.compile(
    r"\?(?=\s|$)|？"
    r"|^\s*(?:@\S{1,80}\s{1,5})?\W{0,5}(?:how|what|who|where|when|why|which|can|could|does|do|is|are|has|anyone|anybody)\b",
    re.IGNORECASE,
)
_THANKS = frozenset(
    "thanks thank thx ty you u so much very cheers great nice cool good perfect awesome works worked working fine ok okay "
    "yes yep yeah sure done got it found solved same here me too will do checking looking lgtm a lot again now that this i "
    "we helped knows know for the hi hello hey".split()
)
"""Words of replies that say nothing."""

_EMOJI = re.compile(r":(?!\d)[\w+-]+:")
_EMPHASIS = re.compile(r"^([*_]{1,3})((?:(?!\1).)+)\1$")  # of a whole cell


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, list item, table row or block of code, verbatim but for list markers, table bars and white space.

    Code is fenced. `repeat` is the number of earlier headings in the document with the same text as `heading`.
    """

    passage: Passage
    kind: BlockKind
    text: str
    heading: str = ""
    repeat: int = 0

    @property
    def introduces(self) -> bool:
        """Return whether it only introduces the text after it."""
        return self.text.endswith(":")

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Return the key of the place to cite: a section of a passage, or a message of a thread."""
        return self.passage.id, self.heading, self.repeat, _url(self.passage, self.text)

    def cited(self, number: int) -> Citation:
        """Return the citation of its section, with the statement as the quote."""
        return cited(number, self.passage, self.heading, self.repeat, self.text)


def cited(number: int, passage: Passage, heading: str, repeat: int, quote: str) -> Citation:
    """Return the citation of a section of a passage: the `repeat`-th one with this heading, counted from 0."""
    return Citation(
        number=number,
        document_id=passage.document_id,
        passage_id=passage.id,
        title=passage.title,
        heading=heading,
        anchor=anchor(passage.anchors, passage.title, heading, repeat),
        url=_url(passage, quote),
        quote=quote if len(quote) <= MAX_QUOTE else f"{quote[: MAX_QUOTE - 1]}…",
        updated_at=passage.updated_at,
        restricted=PUBLIC not in passage.readers,
        missing=passage.missing,
    )


def _url(passage: Passage, quote: str) -> str:
    """Return the address of the quoted message in a thread, or of the document."""
    return url_of(passage.text, passage.part_urls, quote) or passage.url


@lru_cache(maxsize=REMEMBERED)
def statements(passage: Passage) -> tuple[Statement, ...]:
    """Return the statements of a passage in order, without headings.

    Of an answered thread, only the replies count that are neither questions nor thanks. Of an unanswered one, the
    message counts, unless it is a question.
    """
    if passage.kind is DocumentKind.THREAD:
        message, replies = split_thread(passage.text)
        answers = [item for item in _statements(passage, replies) if not item.text.endswith("?")]
        informative = [item for item in answers if _informs(item.text)]
        if informative or not _QUESTION.search(message):
            return tuple(informative or _statements(passage, message))
        return tuple(
            item for item in answers if not _THANKS.issuperset(_LETTERS.findall(without_emoji(item.text).lower()))
        )
    items = _statements(passage, passage.text)
    if passage.kind is DocumentKind.INCIDENT:
        return tuple(item for item in items if not item.text.startswith(SERVICE))
    return tuple(items)


def _statements(passage: Passage, text: str) -> list[Statement]:
    result: list[Statement] = []
    heading = passage.heading
    repeats = iter(passage.repeats)
    repeat = next(repeats, 0)
    for block in blocks(text):
        if block.kind is BlockKind.HEADING:
            heading, repeat = block.heading, next(repeats, 0)
            continue
        # A part that is written elsewhere states nothing here.
        stated = (piece for piece in _pieces(block) if not MISSING_PART.fullmatch(piece))
        result += [Statement(passage, block.kind, piece, heading, repeat) for piece in stated]
    return result


def _informs(text: str) -> bool:
    """Return whether a sentence of a chat is informative for others, for example an objection to an earlier message."""
    text = without_emoji(text)
    is_specific = "`" in text or any(map(str.isdigit, text))
    return len(terms(text)) >= MIN_TERMS or is_specific or bool(_OBJECTION.search(text))


def without_emoji(text: str) -> str:
    """Return the text without emoji codes, such as `:wave:`."""
    return _EMOJI.sub("", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, each with its closing mark."""
    result: list[str] = []
    for piece in _SENTENCE_END.split(text):
        sentence = " ".join(piece.split())
        if result and _ABBREVIATION.search(result[-1]):
            result[-1] = f"{result[-1]} {sentence}"
        elif sentence:
            result.append(sentence)
    return result


def _pieces(block: Block) -> Iterator[str]:
    """Yield the texts of a block's statements."""
    match block.kind:
        case BlockKind.LIST_ITEM:
            first, _, rest = ITEM.sub("", block.text).partition("\n")
            yield _bounded(f"{first}\n{textwrap.dedent(rest)}")
        case BlockKind.CODE:
            code = "\n".join(line for line in framed(block)[1] if not line.lstrip().startswith(("```", "~~~")))
            yield f"```\n{_bounded(textwrap.dedent(code))}\n```"
        case BlockKind.TABLE:
            yield from _rows(block.text)
        case _ if all("  " in line.strip() or "\t" in line.strip() for line in block.text.splitlines()):
            yield from map(_bounded, block.text.splitlines())
        case _:
            yield from map(_bounded, sentences(block.text))


def _rows(table: str) -> Iterator[str]:
    """Yield each row with its cells named by the header or, without a header, by the first cell of the row."""
    head, *body = table_rows(table)
    header = [*map(plain, head)]
    for row in body:
        named = [
            (f"{name}: " if name else "") + _EMPHASIS.sub(r"\2", cell)
            for name, cell in zip_longest(header, row, fillvalue="")
            if cell.strip("-: ")
        ]
        first, rest = (named, []) if any(header) else (named[:1], named[1:])
        if named:
            yield _bounded(": ".join("; ".join(part) for part in (first, rest) if part))


def _bounded(text: str) -> str:
    """Return the text without surrounding white space, cut to the length of a statement."""
    text = text.strip("\n").rstrip()
    if len(text) <= MAX_STATEMENT:
        return text
    cut = text[: MAX_STATEMENT - 1]
    return cut.rsplit("\n" if "\n" in cut else " ", 1)[0] + "…"


LONG_ITEM = 60  # words of a list item from which it can be cut at a line end

_WORD = re.compile(r"(?<!\S)[^\w\s]*+\w\S*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, list item, table row, line of code or heading, verbatim.

    `block` and `section` are the numbers of its block and its heading within the passage. `level` is that of its heading, 0
    if the heading is in an earlier passage. `opens` is True for the first
    piece of a block. `heading` is the text of its heading, `repeat` the number of earlier headings in the document with
    the same text, and `path` the terms of all headings above the piece, and of the header of its table.
    """

    text: str
    kind: BlockKind
    block: int
    section: int
    level: int
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

    @property
    def states(self) -> bool:
        """Return whether it can answer: it neither introduces the text after it nor asks."""
        return not self.introduces and not self.text.rstrip().endswith("?")


def word_count(text: str) -> int:
    """Return the number of words: runs without white space that contain a letter or digit."""
    return len(_WORD.findall(text))


@lru_cache(maxsize=REMEMBERED)
def pieces(passage: Passage) -> tuple[Piece, ...]:
    """Return every piece of a passage in order; for a chat thread or an incident, only its statements."""
    if passage.kind is not DocumentKind.PAGE:
        return tuple(
            Piece(each.text, each.kind, number, 0, 0, True, each.heading, each.repeat, frozenset(), tuple(terms(each.text)),
                  word_count(each.text))
            for number, each in enumerate(statements(passage))
        )  # fmt: skip
    return tuple(_pieces_of(passage))


@lru_cache(maxsize=REMEMBERED)
def section_terms(passage: Passage) -> tuple[frozenset[str], ...]:
    """Return the distinct terms of each section of a passage."""
    sections: dict[int, list[str]] = {}
    for piece in pieces(passage):
        sections.setdefault(piece.section, []).extend(piece.terms)
    return tuple(map(frozenset, sections.values()))


def joined(chosen: Sequence[Piece]) -> str:
    """Return neighbouring pieces as Markdown again, with a fence around each part of a code block."""
    parts: list[str] = []
    for before, piece in zip([None, *chosen[:-1]], chosen, strict=True):
        new = before is None or before.block != piece.block
        if new and before is not None:
            parts.append(before.fence and f"\n{before.fence}")
            parts.append("\n" if before.kind is piece.kind is BlockKind.LIST_ITEM else "\n\n")
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
        header = terms(block.text.partition("\n")[0]) if block.kind is BlockKind.TABLE else ()
        for place, (text, fence) in enumerate(_texts(block)):
            piece_terms = tuple(terms(block.heading if block.kind is BlockKind.HEADING else text))
            yield Piece(
                text,
                block.kind,
                number,
                section,
                path[-1][0] if path else 0,
                place == 0,
                heading,
                repeat,
                above.union(header),
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
    return [_text(passage, pieces(passage)[start:end]) for start, end in chunks(passage)] or [passage.indexed_text]


def _text(passage: Passage, chosen: Sequence[Piece]) -> str:
    above = dict.fromkeys(filter(None, (passage.title, chosen[0].heading)))
    body = [piece for piece in chosen if piece.kind is not BlockKind.HEADING]
    return "\n".join([*above, joined(body)] if body else above)


def nearness(passage: Passage, vector: NDArray[np.float32]) -> list[float]:
    """Return the cosine with a question of each piece's chunk; 0 if the passage has no vectors of the question's model."""
    bounds, values = chunks(passage), cosines(passage, vector).tolist()
    if len(bounds) != len(values):
        return [0.0] * len(pieces(passage))
    return [value for (start, end), value in zip(bounds, values, strict=True) for _ in range(start, end)]
