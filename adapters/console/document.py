"""A document as a page: from its passages back to Markdown, and from Markdown to HTML that can do no harm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from itertools import pairwise
from typing import Any
from urllib.parse import quote as percent_encoded
from urllib.parse import urlencode, urlsplit, urlunsplit

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup, escape

from core.knowledge.markdown import plain, slug
from core.model.document import Passage

MAX_QUOTE = 600  # characters of a quote that travel in a link
MAX_STATEMENT = 2_000  # characters of a statement that are shown
MAX_HIGHLIGHT = 4_000  # characters of a quote that are looked for

# Code points that no text may hold stand for the begin and end of the highlight while the Markdown is rendered.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_EDGE = re.compile(f"([{_BEGIN}{_END}])")
_TAG = re.compile(r"(<[^<>]*>)")
_PARAGRAPH_END = re.compile(r"\n\n|\Z")
_MRKDWN = re.compile(r"(```.*?```|`[^`\n]+`|<[^<>\n]+>)", re.DOTALL)
_BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")
_ITALIC = re.compile(r"(?<![\w_])_([^_\n]+)_(?![\w_])")
_QUOTED = re.compile(r"^&gt; (.*)\n?", re.MULTILINE)
_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)\s+")


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """`highlighted` says whether the quote that was asked for is marked in the HTML."""

    html: Markup
    headings: tuple[Heading, ...]
    highlighted: bool


def document_url(document_id: str, channel: str | None, quote: str = "", anchor: str = "") -> str:
    """Return the address of a document on the local page, for a channel's readers, at a heading, with a quote marked."""
    query = {name: value for name, value in (("channel", channel), ("quote", quote[:MAX_QUOTE])) if value}
    path = f"/documents/{percent_encoded(document_id, safe='/')}"
    return urlunsplit(("", "", path, urlencode(query), percent_encoded(anchor)))


def joined(passages: Sequence[Passage]) -> str:
    """The document's Markdown: passages in order, what two neighbours share said once.

    Passages repeat whole blocks of the passage before them, and a blank line stands between blocks.
    """
    text = ""
    for passage in passages:
        ends = [match.start() for match in _PARAGRAPH_END.finditer(passage.text)]
        shared = next((end for end in reversed(ends) if _repeats(text, passage.text[:end])), 0)
        text = f"{text}\n\n{passage.text[shared:].lstrip()}" if text else passage.text
    return text


def _repeats(text: str, start: str) -> bool:
    return bool(start) and (text == start or text.endswith(f"\n\n{start}"))


def render_document(text: str, *, title: str, quote: str = "", channel: str | None = None) -> RenderedDocument:
    """Markdown as HTML: no raw HTML, no picture, no script; headings carry the link targets that citations use.

    A first heading that says what the title says is left out. Links to other documents keep the channel.
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
    """A line: code and emphasis are shown as such, everything else as it was written."""
    return _safe(_sentence_parser().renderInline(text[:MAX_STATEMENT]))


def render_statement(text: str) -> Markup:
    """A sentence of an answer, which may hold a block of code: paragraphs and code, no other markup."""
    return _safe(_sentence_parser().render(text[:MAX_STATEMENT]))


def render_mrkdwn(text: str) -> Markup:
    """Slack's markup as Slack draws it. All but its own marks is escaped; a link leads to the web or is its text."""
    html = "".join(_piece(piece) for piece in _MRKDWN.split(text))
    return Markup(html)  # noqa: S704 - every piece is escaped


def _piece(piece: str) -> str:
    code = piece.strip("`")
    if piece.startswith("```"):
        return str(Markup("<pre><code>{}</code></pre>").format(unescape(code)))
    if piece.startswith("`") and len(piece) > 2:
        return str(Markup("<code>{}</code>").format(unescape(code)))
    if piece.startswith("<"):
        url, _, label = piece[1:-1].partition("|")
        address, shown = unescape(url), unescape(label or url)
        if urlsplit(address).scheme in ("http", "https"):
            return str(Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(address, shown))
        return str(Markup("<strong>@{}</strong>").format(shown))
    html = str(escape(unescape(piece)))
    html = _BOLD.sub(r"<strong>\1</strong>", html)
    html = _ITALIC.sub(r"<em>\1</em>", html)
    return _QUOTED.sub(r"<blockquote>\1</blockquote>", html)


def _safe(html: str) -> Markup:
    return Markup(html)  # noqa: S704 - made by markdown-it with `html` off, which escapes all text and attributes


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.core.ruler.push("highlight", _highlight)
    parser.add_render_rule("image", _picture_as_link)
    parser.add_render_rule("table_open", _scrolling_table)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


@cache
def _sentence_parser() -> MarkdownIt:
    return MarkdownIt("zero", {"html": False}).enable(["fence", "backticks", "emphasis", "escape"])


def _picture_as_link(_self: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    """A picture would be fetched from wherever an untrusted document says; its name and address are enough."""
    picture = tokens[index]
    return str(
        Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(
            picture.attrGet("src"), picture.content or "picture"
        )
    )


def _scrolling_table(*_: Any) -> str:
    return '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table>\n'


def _same(heading: str, title: str) -> bool:
    return plain(heading).casefold() in title.casefold()


def _with_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give every heading its id; one that comes twice is numbered from its second time on."""
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
    """Put the two marks around the quote where the text holds it; line by line, if it runs over several blocks."""
    quote = state.env.get("quote", "")
    if quote.strip() and not _put_marks(state.tokens, quote):
        for line in quote.splitlines():
            _put_marks(state.tokens, line)


def _put_marks(tokens: Sequence[Token], quote: str) -> bool:
    """Mark the quote in the first block that shows it; False if none does."""
    code = _loose(quote)
    prose = _loose("".join(map(_shown, _parser().parseInline(quote)[0].children or ())))
    for token in tokens:
        pieces = [token] if token.type in ("fence", "code_block") else token.children or []
        found = (prose if token.children else code).search("".join(map(_shown, pieces)))
        if found:
            _insert_marks(pieces, *found.span())
            return True
    return False


def _shown(piece: Token) -> str:
    """Return the text that a reader sees of a piece of a block."""
    if piece.type in ("text", "code_inline", "fence", "code_block"):
        return piece.content
    return "\n" if piece.type in ("softbreak", "hardbreak") else ""


def _insert_marks(pieces: Sequence[Token], start: int, end: int) -> None:
    """`start` and `end` count characters that are shown. The Markdown is parsed already, so that marks change no text."""
    at = 0
    for piece in pieces:
        after = at + len(_shown(piece))
        if at < end <= after:
            piece.content = piece.content[: end - at] + _END + piece.content[end - at :]
        if at <= start < after:
            piece.content = piece.content[: start - at] + _BEGIN + piece.content[start - at :]
        at = after


def _loose(quote: str) -> re.Pattern[str]:
    """The words of a quote, whatever white space is between them. What is too short to tell matches nothing."""
    words = _LIST_MARK.sub("", quote).rstrip("…").split()
    return re.compile(r"\s+".join(map(re.escape, words)) if sum(map(len, words)) > 3 else r"(?!)")


def _marked(html: str) -> str:
    """The two marks as `<mark>`: around every stretch of text between them, so that no element is cut in two."""
    pieces: list[str] = []
    inside = False
    for piece in _TAG.split(html):
        if piece.startswith("<"):
            pieces.append(piece.replace(_BEGIN, "").replace(_END, ""))
            continue
        for stretch in _EDGE.split(piece):
            if stretch in (_BEGIN, _END):
                inside = stretch == _BEGIN
            elif inside and stretch.strip():
                pieces.append(f"<mark>{stretch}</mark>")
            else:
                pieces.append(stretch)
    return "".join(pieces)
