"""Turn the Markdown source of sites into plain, readable Markdown.

Shortcodes, admonitions, comments, pictures, raw HTML and navigation become text or are removed. Code is kept verbatim,
without the numbers of its lines. The furniture of a site, such as “Was this page helpful?”, is removed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from textwrap import dedent
from urllib.parse import urljoin, urlsplit

from core.knowledge.markdown import ITEM
from core.model.text import missing_part

MAX_DEPTH = 8  # nested admonitions

_FENCE = re.compile(r"^[>\s]*(?:(?:[-*+]|\d{1,3}[.)])\s+)?(`{3,}(?=[^`]*$)|~{3,})")
_INDENTS = ("    ", "\t")  # of code
_FOLDED = re.compile(
    r'^([ \t]*)(?:(?:!!!|\?\?\?\+?)[ \t]+(?P<kind>[\w-]+)[^"\n]*+|===[+!]?[ \t]*+)(?:"(?P<title>[^"\n]*)")?[ \t]*$'
)
_HIGHLIGHT = re.compile(r"^([ \t]*)\{\{[<%][ \t]*(?P<end>/?)highlight\b[ \t]*+(?P<language>[\w+-]*+).*[%>]\}\}[ \t]*$")
_CONTAINER = re.compile(
    r"(?m)^[ \t]*:{3,}[ \t]*+(?:\{?(?P<kind>[A-Za-z][\w-]*+)\}?[ \t]*+\[?(?P<title>[^\]\n]*+)\]?)?[ \t]*$"
)
_OPENING_COMMENT = re.compile(r"<!--|\{\{[<%]\s*comment\b")
_CLOSING_COMMENT = {"<!--": re.compile(r"-->"), "{{": re.compile(r"\{\{[<%]\s*/comment\s*[%>]\}\}")}
_CALLOUT = re.compile(r"\[!(\w+)\][+-]?[ \t]*(?:\n[ \t]*)?")
_HEADING_NAME = re.compile(
    r"(?m)^(#{1,6} [^\n]{0,300}?)[ \t]{0,8}\{#[^}\n]{0,200}\}[ \t]*$|^[ \t]*\{:[^}\n]*\}[ \t]*$|^[ \t]*\[\[?_?toc_?\]\]?[ \t]*$",
    re.IGNORECASE,
)
_CONTENTS = re.compile(
    r"(?mi)(?:^#{1,6}[ \t]+(?:table of )?contents[ \t]*\n\s*)?"
    r"(?:^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[[^\n]*\]\(#[^)\n]*\)[ \t]*(?:\n|\Z)){3,}"
)
_COLUMN_RULE = re.compile(r"^ {0,3}-{2,}(?:[ \t]+-{2,})+[ \t]*$")
_ENTITY = re.compile(r"&(?:nbsp|lt|gt|amp|quot|#\d{2,5});")
_QUOTATION = re.compile(r"^([ \t]*+)(?:>[ \t]?)++")
_DEFINITION = re.compile(
    r"(?m)^ {0,3}\[([^\[\]\n^][^\[\]\n]{0,200})\]:[ \t]{1,8}<?([^\s<>]{1,500})>?(?:[ \t]{1,8}[\"'(][^\n]{0,300})?[ \t]{0,8}$\n?"
)
_REFERENCE = re.compile(r"(?<![\]\\!])\[([^\[\]\n]{1,300})\]\[([^\[\]\n]{0,200})\]")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*){2,}")

_TAGS = (
    "a|abbr|article|b|blockquote|br|center|cite|dd|details|div|dl|dt|em|figure|figcaption|font|h[1-6]|hr|i|iframe|img|kbd|li"
    "|main|mark|nav|ol|p|picture|pre|s|section|small|source|span|strong|sub|summary|sup|svg|path|table|tbody|td|tfoot|th"
    "|thead|tr|tt|u|ul|var|video|code"
)
_TAG_TEXT: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("br", "td", "th"), (" ", " ")),
    **dict.fromkeys(("summary", "dt"), ("\n**", "**\n")),
    **dict.fromkeys(("li", "dd"), ("\n- ", "")),
    **dict.fromkeys(("p", "div", "details", "section", "pre", "ul", "ol"), ("\n", "\n")),
}
"""The text that replaces the opening and the closing tag; other tags are removed."""

_CODE = r"(?P<code>(?<!`)(?P<ticks>`{1,8})(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`))"  # within a line
_INLINE = re.compile(
    rf"{_CODE}"
    r"|\[!\[(?P<linked>[^\[\]\n]{0,300})\]\([^)\n]{0,500}\)\]\([^)\n]{0,500}\)"
    r"|!\[(?P<alt>[^\[\]\n]{0,300})\]\([^)\n]{0,500}\)(?:\{[^}\n]{0,200}\})?"
    r"|(?:\{\{[<%]|<%=[ \t]{0,8}(?=partial\b|include\b|render\b))(?P<shortcode>[^{}]{0,1000}?)(?:/?[%>]\}\}|-?%>)"
    r"|<%[^%]{0,1000}%>"  # other tags of ERB, EJS and JSP, which are the template's and not the page's
    r"|<a\s[^<>]{0,300}?href=[\"'](?P<href>[^\"'<>]{0,500})[\"'][^<>]{0,300}>(?P<anchor>[^\n]{0,300}?)</a>"
    r"|<(?P<mono>code|kbd|tt)>(?P<written>[^`<>\n]{0,300})</(?P=mono)>"
    rf"|<(?P<close>/?)(?P<tag>{_TAGS})(?P<attributes>(?:\s[^<>]{{0,2000}})?)/?>"
)
_NAMED = re.compile(r"""(?<![\w-])([\w-]+)=(?:"([^"]*)"|'([^']*)'|(\S+))""")
_GIVEN = re.compile(r"""(?<![=\w])(?:"([^"]*)"|'([^']*)'|`([^`]*)`|([^\s"'`=]+)(?!\S))""")
_LABELS = frozenset(
    "admonition alert note warning tip caution callout hint notice important info danger attention error success question "
    "abstract example quote bug".split()
)
_INCLUDED = re.compile(
    rf"{_CODE}"
    r"|(?<!\{)\{%-?[ \t]{0,4}include[\w-]{0,20}[ \t]{1,4}([^%\n]{1,300})%\}"  # Jekyll, Jinja, GitBook
    r"|\{\{[ \t]{0,4}#include[ \t]{1,4}([^{}\n]{1,300})\}\}"  # mdBook
    r"|\{![ \t]{0,4}([^!\n]{1,300})!\}"  # Markdown-Include
    r"|^[ \t]*+-{1,8}8<-{1,8}[ \t]*\n([^\n]{1,300})(?:\n([^\n]{1,300}))??(?:\n([^\n]{1,300}))??\n[ \t]*-{1,8}8<-{1,8}[ \t]*$"
    r"|(?<![;\w-])-{1,8}8<-{1,8}[ \t]{1,4}([^\n]{1,300})"  # snippets of PyMdown
    r"|^[ \t]*+\.\.[ \t]{1,4}include::[ \t]{1,4}([^\n]{1,300})"  # reStructuredText
    r"|^[ \t]*+include::([^\[\n]{1,300})\[[^\n]{0,300}",  # AsciiDoc
    re.MULTILINE,
)
_IMPORT = re.compile(
    r"(?m)^import[ \t]{1,4}(\w{1,80})[ \t]{1,4}from[ \t]{1,4}[\"']([^\"'\n]{1,300}\.mdx?)[\"'];?[ \t]*+$\n?"
)
_COMPONENT = re.compile(r"<([A-Z]\w{0,80})(?:\s[^<>]{0,300})?/>")
_FILE = re.compile(r"^[^\s:]{1,300}\.[A-Za-z]\w{0,7}$")
_INCLUDES = ("includ", "readfile", "read-file", "snippet", "excerpt", "transclu", "import", "partial", "reuse")
"""Parts of the names of shortcodes that show what is written elsewhere."""
_ADDRESS = re.compile(
    rf"{_CODE}"
    r"|\[(?P<text>(?:[^\[\]\n]|\[[^\[\]\n]{0,300}\]){1,300})\]"
    r"\((?P<to>[^()\s]{0,500}(?:\([^()\s]{0,200}\)[^()\s]{0,200}){0,3})(?P<title>\s{1,8}[\"'][^\"'\n]{0,300}[\"'])?\)"
)

# Code, and text that is struck out or that no reader of the page sees.
_UNSEEN = re.compile(
    rf"{_CODE}|[ \t]?+(?:"
    r"(?<![~\\])~~(?![~\s])(?:[^~\n]|~(?!~)|\n(?![ \t]*(?:\n|[-*+>#|]|\d{1,3}[.)])))++(?<!\s)~~(?!~)"
    r"|<(?P<tag>(?:s|del|strike)\b|\w++(?=[^<>]*?(?:line-through|\shidden\b(?!=.until)|display\s*:\s*none)))[^<>]*+>"
    r"(?:[^<]|<(?!/?(?P=tag)\b))*+</(?P=tag)\s*>)",
    re.IGNORECASE,
)
_EMPTY_ITEM = re.compile(r"(?m)^[ \t]*(?:[-*+]|\d{1,3}[.)])(?:[ \t]+\[[ xX]\])?[ \t]*$\n?")


def clean(text: str) -> str:
    """Return the text as a person reads it, with its code verbatim. What it includes from elsewhere is named."""
    lines = _unfolded(text.replace("\r\n", "\n").split("\n"), 0)
    imported = {match[1]: _missing_file(match[2]) for match in _IMPORT.finditer(text)}

    def cleaned(prose: str) -> str:
        named = _COMPONENT.sub(lambda match: imported.get(match[1], match[0]), _IMPORT.sub("", prose))
        return _cleaned(named if imported else prose)

    return _with_inline_links(_over_prose("\n".join(lines), cleaned, _unnumbered)).strip()


def with_includes_named(text: str) -> str:
    """Return the text with the name of each file in the place where a site generator includes it."""
    return _INCLUDED.sub(
        lambda match: match[0] if match["code"] else "\n".join(map(_missing_file, filter(None, match.groups()))), text
    )


def _missing_file(target: str) -> str:
    path = _first(match) if (match := _GIVEN.search(target)) else target.strip()
    return missing_part(path, path)


def without_struck(text: str) -> str:
    """Return Markdown without text that is struck out, of which code is never a part, or that no reader of it sees."""
    return _over_prose(text, _seen)


def _seen(prose: str) -> str:
    seen = _UNSEEN.sub(lambda match: match["code"] or "", prose)
    return _EMPTY_ITEM.sub("", seen) if seen != prose else prose


def without_site(text: str) -> str:
    """Return Markdown without what a site adds to each page."""
    return _over_prose(text, without_furniture).strip()


def with_whole_links(text: str, url: str) -> str:
    """Return the text with its relative links made absolute from `url`, the address of the page.

    If the page is a file in a code forge, a link from the root of the site, which the forge lacks, becomes text.
    """
    is_forge = "/blob/" in url or "/src/branch/" in url

    def link(match: re.Match[str]) -> str:
        to = match["to"]
        try:
            if match["code"] or not to or urlsplit(to).scheme:
                return match[0]
            if to.startswith("/") and not to.startswith("//") and is_forge:
                return match["text"]
            return f"[{match['text']}]({urljoin(url, to)})"
        except ValueError:  # an address that no program understands
            return match[0]

    return _over_prose(text, lambda prose: _ADDRESS.sub(link, prose)) if url else text


def without_dead_links(text: str) -> str:
    """Return the text with relative links, which lead nowhere outside the page's own site, as plain text."""
    return _ADDRESS.sub(
        lambda match: match[0] if match["code"] or _leads_anywhere(match["to"]) else match["text"], text
    )


def _leads_anywhere(address: str) -> bool:
    try:
        return bool(urlsplit(address).scheme)
    except ValueError:
        return False


def _with_inline_links(text: str) -> str:
    """Return the text with reference links as inline links."""
    prose = [part for is_code, part in _parts(text) if not is_code]
    addresses = {match[1].lower(): match[2] for part in prose for match in _DEFINITION.finditer(part)}

    def link(match: re.Match[str]) -> str:
        to = addresses.get((match[2] or match[1]).lower())
        return f"[{match[1]}]({to})" if to else match[0]

    return _over_prose(text, lambda prose: _REFERENCE.sub(link, _DEFINITION.sub("", prose))) if addresses else text


def _unfolded(lines: list[str], depth: int) -> list[str]:
    """Return the lines with each indented admonition as a label and its text, and without quotation marks."""
    unfolded: list[str] = []
    closing, quoted, index = "", False, 0
    while index < len(lines):
        line, index = lines[index], index + 1
        if closing:
            closing = "" if line.lstrip(" \t>").startswith(closing) and not line.strip(" \t>`~") else closing
            unfolded.append(_QUOTATION.sub(r"\1", line) if quoted else line)
        elif fence := _FENCE.match(line):
            closing, quoted = fence[1], line.lstrip().startswith(">")
            unfolded.append(_QUOTATION.sub(r"\1", line))
        elif code := _HIGHLIGHT.match(line):
            unfolded.append(f"{code[1]}```{'' if code['end'] else code['language']}")
        elif (folded := _FOLDED.match(line)) and (folded["kind"] or folded["title"]) and depth < MAX_DEPTH:
            end = _end_of_indented(lines, index, len(folded[1]) + 4)
            inner = [each[len(folded[1]) + 4 :] for each in lines[index:end]]
            label = _label(folded["kind"] or "", folded["title"] or "")
            unfolded += [*(folded[1] + each for each in ["", label, *_unfolded(inner, depth + 1)]), ""]
            index = end
        else:
            unfolded.append(_QUOTATION.sub(r"\1", line))
    return unfolded


def _end_of_indented(lines: list[str], start: int, indent: int) -> int:
    end = start
    for index in range(start, len(lines)):
        if not lines[index].strip():
            continue
        if len(lines[index]) - len(lines[index].lstrip(" ")) < indent:
            break
        end = index + 1
    return end


def _over_prose(text: str, change: Callable[[str], str], change_code: Callable[[str], str] = str) -> str:
    return "\n".join((change_code if is_code else change)(part) for is_code, part in _parts(text))


def _unnumbered(code: str) -> str:
    opening, *lines = code.split("\n")
    if len(lines) < 2 or not _FENCE.match(opening):
        return code
    return "\n".join((opening, without_line_numbers("\n".join(lines[:-1])), lines[-1]))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the text as alternating parts of prose and code (fenced, or indented outside lists), by whole lines."""
    kept: list[str] = []
    was_code = in_list = hidden = False
    closing, before = "", ""
    for line in text.split("\n"):
        ends = False
        if closing:
            is_code = True
            ends = not line.strip(" \t>`~") and line.lstrip(" \t>").startswith(closing)
        elif (fence := _FENCE.match(line)) and not hidden:
            is_code, closing = True, fence[1]
        else:
            indented = line.startswith(_INDENTS) and bool(line.strip())
            is_code = indented and not in_list and not hidden and (was_code or not before.strip())
            in_list = bool(ITEM.match(line)) or (in_list and (not line.strip() or line[:1] in " \t"))
            hidden = (line.rfind("<!--") > line.rfind("-->")) or (hidden and "-->" not in line)
        if is_code != was_code and kept:
            yield was_code, "\n".join(kept)
            kept = []
        kept.append(line)
        was_code, before = is_code, line
        closing = "" if ends else closing
    yield was_code, "\n".join(kept)


def _cleaned(prose: str) -> str:
    prose = with_includes_named(_seen(_without_comments(prose)))
    prose = _HEADING_NAME.sub(lambda match: match[1] or "", prose)
    prose = _CONTENTS.sub("", prose)
    prose = _CONTAINER.sub(_contained, prose)
    prose = _INLINE.sub(_inline, prose)
    prose = _CALLOUT.sub(lambda match: f"{_label(match[1], '')} ", prose)
    prose = _ENTITY.sub(lambda match: html.unescape(match[0]).replace("\xa0", " "), prose)
    return _BLANK_LINES.sub("\n\n", without_furniture(prose))


def columns_as_tables(text: str) -> str:
    """Return plain text with each table of aligned columns below a ruled header as a Markdown table.

    The rule is a line of dashes, one run for each column. The table ends with an empty line.
    """
    lines = text.split("\n")
    converted: list[str] = []
    place = 0
    while place < len(lines):
        end = next((each for each in range(place, len(lines)) if not lines[each].strip()), len(lines))
        header, rule, *rows = lines[place:end] if end - place > 2 else ("", "")
        is_rule = bool(_COLUMN_RULE.match(rule))
        starts = [at for at, sign in enumerate(rule) if is_rule and sign == "-" != rule[max(at - 1, 0) : at]]
        if starts and all(row[start - 1 : start] in ("", " ", "\t") for row in (header, *rows) for start in starts[1:]):
            converted += _table([header, *rows], starts)
        else:
            converted += lines[place:end]
        converted += lines[end : end + 1]
        place = end + 1
    return "\n".join(converted)


def _table(rows: list[str], starts: list[int]) -> list[str]:
    bounds = list(zip([0, *starts[1:]], [*starts[1:], None], strict=True))
    cells = [[row[start:end].strip().replace("|", r"\|") for start, end in bounds] for row in rows]
    shown = [f"| {' | '.join(row)} |" for row in cells]
    return [shown[0], "|---" * len(starts) + "|", *shown[1:]]


def _without_comments(prose: str) -> str:
    """Return the text without comments. An unclosed comment is kept."""
    kept: list[str] = []
    position = 0
    while opening := _OPENING_COMMENT.search(prose, position):
        mark = "<!--" if opening[0] == "<!--" else "{{"
        closing = _CLOSING_COMMENT[mark].search(prose, opening.end())
        if closing is None:
            break
        kept.append(prose[position : opening.start()])
        position = closing.end()
    return "".join([*kept, prose[position:]])


def _contained(match: re.Match[str]) -> str:
    kind = (match["kind"] or "").lower()
    return _label(kind, match["title"].strip()) if kind in _LABELS or (kind and match["title"]) else ""


def _label(kind: str, title: str) -> str:
    """Return “**Note: Title**”, or only the title if the kind is unknown or generic."""
    kind = kind.lower()
    named = kind.capitalize() if kind in _LABELS and kind not in ("admonition", "alert", "callout") else ""
    return f"**{': '.join(filter(None, (named, title)))}{'' if title else ':'}**" if named or title else ""


def _inline(match: re.Match[str]) -> str:
    if match["code"]:
        return match[0]
    if (alt := match["linked"] if match["linked"] is not None else match["alt"]) is not None:
        return _described(alt)
    if match["shortcode"] is not None:
        return _shortcode(match["shortcode"])
    if match["href"] is not None:
        return f"[{_INLINE.sub(_inline, match['anchor'])}]({match['href']})" if match["anchor"].strip() else ""
    if match["mono"]:
        return f"`{match['written']}`"
    return _tag(match["tag"] or "", match["attributes"] or "", closes=bool(match["close"]))


def _described(alt: str) -> str:
    """Return a picture's description if it has four words or more; shorter ones are names or badges."""
    return alt if len(alt.split()) >= 4 else ""


def _shortcode(inner: str) -> str:
    name, _, arguments = inner.strip().partition(" ")
    if name.startswith("/"):
        return ""
    named = _named(arguments)
    given = [_first(match) for match in _GIVEN.finditer(_NAMED.sub("", arguments))]
    last = name.rpartition("/")[2].lower()
    if last in ("ref", "relref"):
        return given[0] if given else named.get("path", "")
    if last in _LABELS:
        kind = named.get("type") or (last if last not in ("alert", "callout", "admonition") else named.get("color", ""))
        return f"\n{_label(kind or (given[0] if given else ''), named.get('title', ''))}"
    if last in ("tab", "tab-content", "collapse", "details", "expand", "qa"):
        title = next((named[key] for key in ("name", "title", "header", "summary", "question") if key in named), "")
        title = title or " ".join(given)
        return f"\n**{title}**\n" if title else ""
    if last in ("figure", "image", "img", "imgproc", "screenshot"):
        return _described(named.get("caption") or named.get("alt") or named.get("title") or "")
    stated = [*named.values(), *given]
    if "text" not in named and (
        files := [each for each in stated if _FILE.search(each)]
        or (any(map(name.lower().__contains__, _INCLUDES)) and stated)
    ):
        return _missing_file(files[0])
    return named.get("text", "")


def _named(arguments: str) -> dict[str, str]:
    """Return the named arguments of a shortcode or tag."""
    return {match[1]: _first(match, 1) for match in _NAMED.finditer(arguments)}


def _first(match: re.Match[str], after: int = 0) -> str:
    return next((group for group in match.groups()[after:] if group), "")


def _tag(tag: str, attributes: str, *, closes: bool) -> str:
    if tag == "img":
        return _described(_named(attributes).get("alt", ""))
    if tag[:1] == "h" and tag[1:].isdigit():
        return "\n" if closes else f"\n{'#' * int(tag[1])} "
    return _TAG_TEXT.get(tag, ("", ""))[closes]


SHORTEST_NUMBERED = 3  # lines of code with numbers; fewer may be data

_LINK = r"(?:\]\([^)\n]{0,500}\))?"
_ANSWER = rf"(?:[^\w\n]|\b(?:yes|no)\b{_LINK})"
_FURNITURE = re.compile(
    r"(?mi)^[^\w\n]{0,10}(?:(?:was|is) this (?:page|article|topic|document(?:ation)?|guide|information|content|answer) (?:helpful|useful)"
    r"|did this (?:page|article|answer) help(?: you)?|found an error on this page|(?:edit|improve) this page(?: on \w{1,20})?"
    r"|edit (?:this page |source )?on (?:github|gitlab|bitbucket)|(?:view|show) (?:page )?source|skip to (?:the )?(?:main )?content"
    rf"|back to (?:the )?top){_LINK}{_ANSWER}{{0,40}}$\n?(?:\s{{0,5}}^{_ANSWER}{{1,40}}$\n?){{0,2}}"
)
_NEIGHBOURS = re.compile(
    r"(?mi)^[ \t]*(?:\[(?:\W{0,5}(?:previous|prev|next)\b[^\]\n]{0,200}|[←→«»‹›][^\]\n]{0,200}|[^\]\n]{1,200}[→»›])\]\([^)\n]{0,500}\)[ \t|·]{0,9}){1,2}$\n?"
)
_PATH = re.compile(
    r"\A\s*\[[^\]\n]{1,100}\]\([^)\n]{0,500}\)(?: {0,3}[>›»/] {0,3}\[?[^\n>›»/\]]{1,100}(?:\]\([^)\n]{0,500}\))?){1,8}\n"
)
_PERMALINK = re.compile(
    r"(?m)^(?P<heading>#{1,6} [^\n]{0,300}?)(?P<sign>[ \t]{0,4}(?:[¶🔗⚓]|\[(?:[^\w\n\]]{0,5}|Permalink|Link)\]\([^)\n]{0,300}\))){1,3}[ \t]*$"
)
_CODE_SIGNS = frozenset("-#/=(){}[];$_<>|&\"'")
_NUMBERED = re.compile(r"^[ \t]*(\d{1,6})(?:[ \t]*[|:][ \t]?|[.)][ \t]|[ \t]|$)")


def without_furniture(prose: str) -> str:
    """Return Markdown without code, without the links and questions that a site adds to each page."""
    prose = _NEIGHBOURS.sub("", _FURNITURE.sub("", _PATH.sub("", prose)))
    return _PERMALINK.sub(lambda match: match["heading"], prose)


def without_line_numbers(code: str) -> str:
    """Return code without the numbers of its lines, if each line has the one that follows that of the line before."""
    lines = code.strip("\n").split("\n")
    numbers = [_NUMBERED.match(line) for line in lines]
    stated = [int(number[1]) if number else 0 for number in numbers]
    if len(lines) < SHORTEST_NUMBERED or not stated[0] or stated != list(range(stated[0], stated[0] + len(lines))):
        return code
    rest = [line[number.end() :] for line, number in zip(lines, numbers, strict=True) if number]
    filled = [line for line in rest if line.strip()]
    # A list of exit codes has hardly any signs of code, and no word with which its lines begin.
    signs = sum(not _CODE_SIGNS.isdisjoint(line) for line in filled)
    beginnings = {line.split()[0] for line in filled}
    is_code = 2 * signs >= len(filled) or 2 * len(beginnings) <= len(filled)
    return dedent("\n".join(rest)) if filled and is_code else code
