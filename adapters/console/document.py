"""Documents as pages: passages are joined to Markdown, and rendered as safe HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby, pairwise
from typing import Any
from urllib.parse import quote as percent_encoded
from urllib.parse import urlencode, urlsplit, urlunsplit

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

from core.answering.excerpts import is_caveat
from core.knowledge.markdown import plain, slug
from core.model.answer import Sentence
from core.model.document import Passage
from core.model.message_view import Statements

SHOWN = 900  # characters after which an answer is folded
LEAST = 300  # characters that are worth a fold
MAX_STATEMENTS = 100
Run = tuple[bool, list[Sentence]]


MAX_QUOTE = 600  # characters of a quote in a link
MAX_STATEMENT = 2_000  # characters of a statement shown
MAX_HIGHLIGHT = 4_000  # characters of a quote searched for

# Private code points that mark the start and end of the highlight while Markdown is rendered.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_EDGE = re.compile(f"([{_BEGIN}{_END}])")
_TAG = re.compile(r"(<[^<>]*>)")
_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)\s+")


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """A rendered document. `highlighted` tells whether the requested quote is marked."""

    html: Markup
    headings: tuple[Heading, ...]
    highlighted: bool


def document_url(document_id: str, channel: str | None, quote: str = "", anchor: str = "") -> str:
    """Return the address of a document on the local page, for a channel's readers, at a heading, with a highlighted
    quote.
    """
    query = {name: value for name, value in (("channel", channel), ("quote", quote[:MAX_QUOTE])) if value}
    path = f"/documents/{percent_encoded(document_id, safe='/')}"
    return urlunsplit(("", "", path, urlencode(query), percent_encoded(anchor)))


def joined(passages: Sequence[Passage]) -> str:
    """Return the document's Markdown from its passages in order, without repetitions.

    Passages repeat whole blocks of the preceding passage; blocks are separated by blank lines.
    """
    text = ""
    for passage in passages:
        blocks = passage.text.split("\n\n")
        starts = ("\n\n".join(blocks[:end]) for end in range(len(blocks), 0, -1))
        shared = next((start for start in starts if _repeats(text, start)), "")
        text = f"{text}\n\n{passage.text.removeprefix(shared).lstrip()}" if text else passage.text
    return text


def _repeats(text: str, start: str) -> bool:
    return bool(start) and (text == start or text.endswith(f"\n\n{start}"))


def render_document(text: str, *, title: str, quote: str = "", channel: str | None = None) -> RenderedDocument:
    """Return Markdown as HTML without raw HTML, images and scripts. Headings get the anchors that citations use.

    A first heading that equals the title is left out. Links to other documents keep the channel.
    """
    environment: dict[str, Any] = {"quote": quote[:MAX_HIGHLIGHT]}
    tokens = _parser().parse(text, environment)
    if len(tokens) > 2 and tokens[0].tag == "h1" and _same(tokens[1].content, title):
        del tokens[:3]
    headings = tuple(_with_anchors(tokens))
    _keep_channel(tokens, channel)
    html = _parser().renderer.render(tokens, _parser().options, environment)
    return RenderedDocument(_safe(_marked(html)), headings, _BEGIN in html)


def render_inline(text: str) -> Markup:
    """Return one line as HTML, with code and emphasis rendered and everything else escaped."""
    return _safe(_sentence_parser().renderInline(text[:MAX_STATEMENT]))


def render_statement(text: str, marked: Sequence[str] = ()) -> Markup:
    """Return a sentence of an answer as HTML: paragraphs and code blocks only. Quotes in `marked` are highlighted."""
    quotes = "\n".join(marked)[:MAX_HIGHLIGHT]
    return _safe(_marked(_sentence_parser().render(text[:MAX_STATEMENT], {"quote": quotes})))


def holds(text: str, quote: str) -> bool:
    """Return whether a text contains a quote, with any white space between its words."""
    return _loose(quote).search(text) is not None


def _safe(html: str) -> Markup:
    return Markup(html)  # noqa: S704 - made by markdown-it with `html` off, which escapes all text and attributes


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.core.ruler.push("highlight", _highlight)
    parser.add_render_rule("image", _picture_as_link)
    parser.add_render_rule(
        "table_open", lambda *_: '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table>\n'
    )
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


@cache
def _sentence_parser() -> MarkdownIt:
    parser = MarkdownIt("zero", {"html": False}).enable(["fence", "table", "backticks", "emphasis", "escape"])
    parser.core.ruler.push("highlight", _highlight)
    return parser


def _picture_as_link(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    """Render an image as its name and address, because loading it would contact an untrusted host."""
    picture = tokens[index]
    return str(
        Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(
            picture.attrGet("src"), picture.content or "picture"
        )
    )


def _same(heading: str, title: str) -> bool:
    return plain(heading).casefold() in title.casefold()


def _with_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give every heading its id. Repeated ids are numbered from the second on."""
    seen: dict[str, int] = {}
    for opening, content in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        anchor = slug(content.content)
        times = seen.get(anchor, 0)
        seen[anchor] = times + 1
        anchor = f"{anchor}-{times}" if times else anchor
        opening.attrSet("id", anchor)
        yield Heading(int(opening.tag[1:]), plain(content.content), anchor)


def _keep_channel(tokens: Sequence[Token], channel: str | None) -> None:
    for link in (child for token in tokens for child in token.children or () if child.type == "link_open"):
        url = urlsplit(str(link.attrGet("href")))
        if url.scheme or url.netloc:
            link.attrSet("rel", "noreferrer noopener")
        elif channel and url.path and not url.path.startswith("/"):
            link.attrSet("href", urlunsplit(url._replace(query=urlencode({"channel": channel}))))


def _highlight(state: StateCore) -> None:
    """Put the marks around the quote; line by line if it spans several blocks."""
    quote = state.env.get("quote", "")
    if quote.strip() and not _put_marks(state.tokens, quote):
        for line in quote.splitlines():
            _put_marks(state.tokens, line)


def _put_marks(tokens: Sequence[Token], quote: str) -> bool:
    """Mark the quote in the first block that contains it. Returns whether one does."""
    code = _loose(quote)
    prose = _loose("".join(map(_shown, _parser().parseInline(quote)[0].children or ())))
    for token in tokens:
        pieces = [token] if token.type in ("fence", "code_block") else token.children or []
        match = (prose if token.children else code).search("".join(map(_shown, pieces)))
        if match:
            _insert_marks(pieces, *match.span())
            return True
    return False


def _shown(piece: Token) -> str:
    """Return the visible text of a piece of a block."""
    if piece.type in ("text", "code_inline", "fence", "code_block"):
        return piece.content
    return "\n" if piece.type in ("softbreak", "hardbreak") else ""


def _insert_marks(pieces: Sequence[Token], start: int, end: int) -> None:
    """Insert the marks at visible character positions. The Markdown is already parsed, so marks change no text."""
    at = 0
    for piece in pieces:
        after = at + len(_shown(piece))
        if at < end <= after:
            piece.content = piece.content[: end - at] + _END + piece.content[end - at :]
        if at <= start < after:
            piece.content = piece.content[: start - at] + _BEGIN + piece.content[start - at :]
        at = after


def _loose(quote: str) -> re.Pattern[str]:
    """Return a pattern of the quote's words with any white space between them. Short quotes match nothing."""
    words = _LIST_MARK.sub("", quote).rstrip("…").split()
    return re.compile(r"\s+".join(map(re.escape, words)) if sum(map(len, words)) > 3 else r"(?!)")


def _marked(html: str) -> str:
    """Replace the marks with `<mark>` elements around every stretch of text between them, without splitting elements."""
    pieces: list[str] = []
    inside = False
    for piece in _TAG.split(html):
        if piece.startswith("<"):
            pieces.append(piece.replace(_BEGIN, "").replace(_END, ""))
            continue
        for stretch in _EDGE.split(piece):
            if stretch in (_BEGIN, _END):
                inside = stretch == _BEGIN
            else:
                pieces.append(f"<mark>{stretch}</mark>" if inside and stretch.strip() else stretch)
    return "".join(pieces)


def folded(text: Statements) -> list[Run]:
    """Return the text in runs, each with whether it is folded.

    Sentences that limit or forbid something and the one that answers are never folded, nor is what they are quoted from.
    """
    runs = [
        (hidden, [sentence for _, sentence in run]) for hidden, run in groupby(_judged(text), key=lambda pair: pair[0])
    ]
    return [(hidden and sum(len(each.text) for each in run) >= LEAST, run) for hidden, run in runs]


def _judged(text: Statements) -> list[tuple[bool, Sentence]]:
    sentences = text.sentences[:MAX_STATEMENTS]
    parts = list(accumulate(bool(each.citations) for each in sentences))  # a heading is cited, its quotes are not
    hidden = [
        end > SHOWN and not is_caveat(each.text) and not any(holds(each.text, quote) for quote in text.marked)
        for each, end in zip(sentences, accumulate(len(each.text) for each in sentences), strict=True)
    ]
    shown = {part for part, is_hidden in zip(parts, hidden, strict=True) if not is_hidden}
    return [
        (is_hidden and not (each.citations and part in shown), each)
        for each, part, is_hidden in zip(sentences, parts, hidden, strict=True)
    ]
