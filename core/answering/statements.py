"""Split passages into statements, the smallest parts that make sense when quoted, and cite them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from core.knowledge.markdown import ITEM, Block, BlockKind, anchor, blocks, framed, plain, table_rows
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
    def place(self) -> tuple[str, str, int, str]:
        """Return the key of the place to cite: a section of a passage, or a message of a thread."""
        return self.passage.id, self.heading, self.repeat, url_of(self.passage.text, self.passage.part_urls, self.text)

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
        url=url_of(passage.text, passage.part_urls, quote) or passage.url,
        quote=quote if len(quote) <= MAX_QUOTE else f"{quote[: MAX_QUOTE - 1]}…",
        updated_at=passage.updated_at,
        restricted=PUBLIC not in passage.readers,
        missing=passage.missing,
    )


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
    is_incident = passage.kind is DocumentKind.INCIDENT
    items = _statements(passage, passage.text)
    return tuple(item for item in items if not (is_incident and item.text.startswith(SERVICE)))


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
    return len(terms(text)) >= MIN_TERMS or "`" in text or any(map(str.isdigit, text)) or bool(_OBJECTION.search(text))


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
