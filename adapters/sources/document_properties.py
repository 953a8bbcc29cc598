"""The properties that a document states about itself, in any format, and its statements on who may access it.

A document is open to the readers of its source unless it names its own readers. Readers that are written down but
cannot be parsed must never count as none: such a document is refused, so that nobody reads it. Whatever else speaks of access
and is not understood must withhold the document, so each rule asks what is certainly open.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import accumulate, chain, dropwhile, product, takewhile
from typing import Any

import yaml
from dateutil import parser as dates

from core.model.conversation import PUBLIC
from core.model.errors import MalformedInput
from core.model.text import refuse_deep_yaml

HEAD_LINES = 200  # lines with text at the top of a document that are searched for metadata
MAX_VALUE = 8  # words of a value that restricts a document, in a line that may be prose
HOW = "list `public`, `channel:NAME` or `person:PLATFORM:ID`"

Statement = tuple[str, str]  # the name of a property and its value

LABEL = "MSIP_Label_"  # the beginning of the name of a property of a sensitivity label
OFF = frozenset({"0", "false", "off", "none"})  # values of a property of a file that is not set
_KEYWORDS = frozenset({"category", "description", "keywords", "li", "subject"})  # properties with several values

_SIMILAR = 0.8  # names this similar to `readers` are misspellings of it
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_THIS_PAGE = frozenset("article content doc document file has is note page post site this wiki".split())
_ACCESS = re.compile(
    r"\b(?:access(?:ible)?|acls?|audiences?|authori[sz]ed|clearance|classifi(?:ed|cation)|confidential(?:ity)?|dissemination|"
    r"embargo(?:ed)?|entitle(?:d|ments?)|permi(?:ssions?|tted)|privacy|private|privileged|protective|public|rbac|readable|readers?|"
    r"recipients?|restrict(?:ed|ions?|s)?|secrecy|sensitiv(?:e|ity)|shar(?:eable|ing)|unlisted|viewable|viewers?|visibility)\b|"
    r"\b(?:zugriff|vertraulich(?:keit)?|geheim(?:haltung)?|leser|zielgruppe|"  # German, French, Spanish
    r"lecteurs?|confidentiel(?:le)?|confidentialite|acceso|lectores|confidencial(?:idad)?)\b|"
    r"^(?:allow(?:ed)?|auth(?:entication|ori[sz]ation)?|circulation|den(?:y|ied)|disclosure|distribution(?: list)?|encrypt(?:ed)?|gated|"
    r"groups|guests?|internal|members(?:hip)?|nda|only|pass(?:word|phrase)|paywall(?:ed)?|protected|roles|subscribers|tlp|visible)$|"
    r"\b(?:can|may|must|who)\b.{0,60}\b(?:open|read|see|view)\b|"
    r"^(?:only|(?:hid(?:e|den)|not|visible) (?:for|from|to))\b|(?<!amp )(?<!append )(?<!read )(?<!write )\bonly$|"
    r"\brequires?\b.{0,20}\b(?:auth|authentication|groups?|login|memberships?|permissions?|roles?)\b|"
    r"\b(?:allow(?:ed)?|auth|den(?:y|ied)|distribution|intended|internal|limit(?:ed)?|login|members?|need|protected|read|security|"
    r"seen|shared?|view|visible|who)\b.{0,60}\b(?:by|can|for|from|groups?|know|labels?|level|marking|may|members?|only|people|"
    r"required|roles?|staff|teams?|to|users?|with)\b"
)
"""Words in the name of a property that speak of access."""
_THINGS = frozenset(
    "address api apis class cloud date dates dns domain endpoint file id ip key keys link log logs method mode modes modifier "
    "modifiers network page pages path point points policy port subnet sufficient time token tokens uri url urls".split()
)
"""Last words of names such as `access_log`, which name a thing."""
_WITHHOLDING = frozenset(
    "auth authentication classified confidential denied deny embargo embargoed encrypt encrypted gated geheim groups hidden hide "
    "internal limit limited members nda not only passphrase password paywall paywalled private privileged protected require "
    "required requires restrict restricted restriction restrictions restricts sensitive unlisted vertraulich".split()
)
_OPENING = frozenset("accessible guest guests public readable shareable sharing viewable visible".split())
_EVERYBODY = frozenset(
    "all any anybody anyone clear every everybody everyone global open public unrestricted visible white worldwide".split()
)
# Words beside one of these that leave a value open, such as “all staff”.
_PEOPLE = frozenset(
    "access colleagues company employees free of our people readers staff the tlp to users world".split()
)
_MARK = re.compile(
    r"(?:(?!no[nt]?\b)[a-z]{1,20} (?:in )?)?(?:classified|confidential|restricted)|top secret|need to know|"
    r"(?:confidential|private) and [a-z]{1,20}|(?:(?:employees?|eyes|for internal|internal|members|staff|team)(?: use)?|leads?) only|"
    r"for (?:internal|official|staff) (?:use|eyes)|do not (?:distribute|forward|share)|"
    r"not for (?:external |public )?(?:circulation|distribution|publication|release)|tlp[: ]{1,2}(?:amber(?: strict)?|green|red)"
)
"""Values that withhold a document, whatever the property is called."""
# Last words of names whose value may be several, such as “Confidential - Finance”.
_LABELS = frozenset("category keywords label labels marking subject tags watermark".split())
_PARTS = re.compile(r"[-–—|/,;.:\\](?!(?:amber|green|red)\b)")
_STATES = frozenset("mode scope stage state status".split())  # last words of names whose value may be `draft`
_UNPUBLISHED = frozenset("draft embargoed internal private unlisted unpublished".split())
_PUBLISHED = frozenset("listed publish published".split())
_NO, _YES = frozenset({"", "false", "n", "no", "none", "null", "off", "~"}), frozenset({"on", "true", "y", "yes"})

_BLOCKS = {"---": "---", "+++": "+++", ";;;": ";;;", "%YAML": "---", "<!--": "-->", "```": "```", "~~~": "~~~"}
"""Signs that begin a block of lines, and those that end it."""
_FENCES = (*_BLOCKS, "{")  # possible beginnings of front matter
_READERS = re.compile(r"readers?\b(?:[^\w\n:=]{0,4}[:=]|[^\n]{0,40}\b(?:channel|person):)", re.IGNORECASE)
_PAIR = re.compile(
    r"(?:^(?:<!--)?|[{,])\s{0,9}[\"']?(?P<name>[^\W\d][\w.$ -]{0,60}+)[\"']?\s{0,9}[:=](?P<value>[^\n,}]{0,200})"
)
_FIELD = re.compile(r"(?:\[[^\]]{0,9}\]: ?#? ?\(|:)(?P<name>[^\W\d][\w. -]{0,60}):(?P<value>.{0,200})")
_PROPERTY = re.compile(r"[#\[\]{}]|- |[\"']?[^\W\d][\w.$-]{0,60}[\"']?:(?:\s|$)")  # a line of YAML
_GAP = re.compile(r"[\s_+-]+")  # between the words of a value
_SCHEMA = ("https://schema.org/", "http://schema.org/")  # prefixes of values
_LINE = re.compile(
    r"(?:[-+*>]\s+)?[*_]{0,3}(?P<name>[^\W\d_][\w .'/&-]{0,40}+)[*_]{0,3} ?[:=][*_]{0,3} {0,9}(?P<value>[^\s/][^\n]*)"
)
_LINE_BREAK = re.compile(r"\n|<br\s{0,9}/?>| [·•] | \| (?=\*\*)", re.IGNORECASE)  # also between properties
_DEFINITION = re.compile(r"(?m)^([^\W\d_][^\n]{0,60})\n:[ \t]+")  # a term of a definition list
_BARS = re.compile(r"(?<!\\)\|")
_BESIDE = re.compile(r"#|[-=*_+;`~]{3,}|!\[|\[!\[|<|>$|\[//\]|%")  # headings, rules, pictures, tags
_TITLES = tuple([(name, "Value")] for name in ("Attribute", "Field", "Item", "Key", "Property"))
# Last words of the names of properties that documents have, beside which another line is a property too.
_COMPANY = frozenset(
    "author authors contact created date department id language maintainer modified owner owners product project reviewed "
    "reviewer revision service status team title type updated version".split()
)
# Words in names and values that are about a page, even in a line that stands alone.
_OF_PAGES = re.compile(
    r"\b(?:marking|classification|confidentiality|distribution|secrecy|sensitivity|tlp|visibility)\b"
)
_RESTRICTING = re.compile(
    r"\b(?:classified|confidential|internal|only|private|restricted|secret)\b|\b(?:channel|group|person):\S"
)
_EXPORT = re.compile(r"export\s+(?:const|let|var|default)\b")


def refuse_restriction(name: str, value: str, open_labels: Collection[str] = ()) -> None:
    """Raise MalformedInput if a property speaks of access, and its value is not certainly open; or marks the document.

    `open_labels` are further values that are open, in lower case.
    """
    stance = _normalised(value)
    if stance not in open_labels and (
        (speaks_of_access(name) and not _is_open(name, value)) or _is_mark(_words(name), stance)
    ):
        raise MalformedInput(
            f"`{name[:40]}` says that not everybody may read the document, or is not understood: name its `readers` in front "
            f"matter or a property, and {HOW}."
        )


def named_values(node: yaml.Node) -> Iterator[Statement]:
    """Yield the values at any depth, each with its name, or with a name above it that speaks of access.

    An alias is the node of its anchor, so each is visited once for each name that it belongs to at most.
    """
    waiting, seen = [("", node)], set[tuple[str, int]]()
    while waiting:
        name, each = waiting.pop()
        if (name, id(each)) in seen:
            continue
        seen.add((name, id(each)))
        if isinstance(each, yaml.ScalarNode) or not each.value:
            yield name, each.value if isinstance(each, yaml.ScalarNode) else "?"
        elif isinstance(each, yaml.SequenceNode):
            waiting += ((name, value) for value in each.value)
        else:
            named = ((str(key.value), value) for key, value in each.value)
            waiting += (
                (own if speaks_of_access(own) or (not name and isinstance(value, yaml.ScalarNode)) else name, value)
                for own, value in named
            )


def statements_above(text: str) -> Iterator[Statement]:
    """Yield what a text states about itself near its top, outside front matter.

    If the text begins like unparsed front matter, all of it is searched for readers. A table or a line counts above the
    first sentence.
    """
    rows = _rows(text)
    yield from unparsed_readers(rows if rows and rows[0].startswith(_FENCES) else rows[:HEAD_LINES])
    rows = rows[:HEAD_LINES]
    lines, tables, at, is_above = list[Statement](), [list[list[str]]()], 0, True
    while at < len(rows):
        row, length = rows[at], _block(rows, at)
        if length and not row.startswith(("```", "~~~")):
            yield from _pairs(rows[at : at + length])
        elif field := _FIELD.match(row):
            yield field["name"], field["value"]
        elif is_above and row.startswith("|"):
            tables[-1].append([cell.strip(" *_`") for cell in _BARS.split(row.strip("|"))])
        elif is_above and not length:
            pair = _LINE.fullmatch(row)
            lines.append((pair["name"], pair["value"]) if pair else ("marking", row))
            is_above = bool(pair or _BESIDE.match(row))
            tables.append([])
        at += max(length, 1)
    yield from _of_page(lines)
    for table in tables:
        yield from _tabulated(table)


def leading_statements(text: str) -> Iterator[Statement]:
    """Yield the names and values in the lines like YAML with which a text begins."""
    return _pairs(takewhile(lambda row: _PROPERTY.match(row) and not row.startswith(("#", "{", "[")), _rows(text)))


def unparsed_readers(rows: Iterable[str]) -> Iterator[Statement]:
    """Yield the lines that begin with something like `readers:`.

    Only punctuation or a brace may precede it, because the word means nothing within a sentence.
    """
    for row in map(plain, rows):
        before = row[: match.start()] if (match := _READERS.search(row)) else "."
        if match and (before.startswith("{") or not any(map(str.isalnum, before))):
            yield "readers", row


def marginal_statements(text: str) -> Iterator[Statement]:
    """Yield the lines of a header or footer, of which each may mark the document or state a property."""
    rows = _rows(text)
    yield from unparsed_readers(rows)
    yield from (("marking", row) for row in rows)
    yield from _of_page([(pair["name"], pair["value"]) for row in rows if (pair := _LINE.fullmatch(row))])


def leaves(tree: Any) -> Iterator[Statement]:
    """Yield the names of the elements and attributes in a tree of XML, with their texts."""
    for element in tree.iter("{*}*") if tree is not None else ():
        named = ((element.tag, element.text or ""), *element.attrib.items())
        yield from ((name.rpartition("}")[2], value.strip()) for name, value in named if value.strip())


def file_statements(properties: Sequence[Statement]) -> Iterator[Statement]:
    """Yield what the properties of a Word or PDF file state: its keywords one by one, and its sensitivity labels.

    An enabled label of Microsoft Purview has a name, or else an id alone.
    """
    labels = {name.removeprefix(LABEL).lower(): value for name, value in properties if LABEL in name}
    for label in sorted({name.partition("_")[0] for name in labels}):
        if labels.get(f"{label}_enabled", "true").lower() not in OFF:
            yield "sensitivity label", labels.get(f"{label}_name", label)
    for name, value in properties:
        if LABEL not in name:
            yield name, value
            if name.lower() in _KEYWORDS:
                yield from marginal_statements(value.replace(",", "\n").replace(";", "\n"))


def _rows(text: str) -> list[str]:
    return [row for line in _LINE_BREAK.split(_DEFINITION.sub(r"| \1 | ", text)) if (row := plain(line))]


def plain(text: str) -> str:
    """Return the text in compatibility form, without signs that have no width, and without white space around it."""
    if text.isascii():
        return text.strip()
    visible = (sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    return "".join(visible).strip()


def speaks_of_access(name: str) -> bool:
    words = _words(name)
    if not words or words[-1] in _THINGS:
        return False
    misspelt = words[0][0] == "r" and SequenceMatcher(None, words[0][:20], "readers").ratio() >= _SIMILAR
    return misspelt or bool(_ACCESS.search(" ".join(words)))


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, without accents and without those that only say “this page”."""
    letters = "".join(sign for sign in unicodedata.normalize("NFKD", plain(name)) if not unicodedata.combining(sign))
    words = [word.lower() for word in _WORD.findall(letters)]
    return [*dropwhile(_THIS_PAGE.__contains__, words)] or words


def _is_open(name: str, value: str) -> bool:
    words, stance, readers = set(_words(name)), _normalised(value), set(_words(value))
    if not readers.isdisjoint(_EVERYBODY) and readers <= _EVERYBODY | _PEOPLE:
        return True
    return stance in _NO if words & _WITHHOLDING else stance in _YES and bool(words & _OPENING)


def _is_mark(words: list[str], stance: str) -> bool:
    last = words[-1] if words else ""
    parts = _PARTS.split(stance) if last in _LABELS else [stance]
    return (
        ((last in _UNPUBLISHED or words == ["secret"]) and stance in _YES)
        or (last in _PUBLISHED and stance in _NO - {""})
        or (last in _STATES and stance in _UNPUBLISHED)
        or any(_MARK.fullmatch(_GAP.sub(" ", part).strip()) for part in parts)
    )


def _normalised(value: str) -> str:
    stance = plain(value).lower()
    for prefix in _SCHEMA:
        stance = stance.removeprefix(prefix)
    return stance.strip(" \t\"'`;,)>[].*_")


def _pairs(rows: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((pair["name"], pair["value"]) for row in rows for pair in _PAIR.finditer(row))


def _block(rows: list[str], at: int) -> int:
    """Return the number of lines in the block that begins here; 0 if none does."""
    first = rows[at]
    if _EXPORT.match(first) or (at == 0 and first.startswith(("{", "[{"))):
        depths = accumulate(row.count("{") - row.count("}") for row in rows[at:])
        return next((length for length, depth in enumerate(depths, 1) if depth <= 0), len(rows) - at)
    opening = next((sign for sign in _BLOCKS if first.startswith(sign)), "")
    if not opening or (opening == "```" and rows[at + 1 : at + 2] == ["---"]):
        return 0
    end = _BLOCKS[opening]
    if end in first.removeprefix(opening) and opening == "<!--":
        return 1
    inside = list(takewhile(lambda row: not (row.startswith(end) or row.endswith("-->")), rows[at + 1 :]))
    closed = at + len(inside) + 1 < len(rows)
    is_rule = opening == "---" and not all(map(_PROPERTY.match, inside))
    return 0 if at and (is_rule or not closed) else len(inside) + 1 + closed


def _tabulated(rows: list[list[str]]) -> Iterator[Statement]:
    """Yield the names and values in a table: in its two columns, or in its header and its only row."""
    filled = [row for row in rows if any(cell.strip(":-") for cell in row)]
    pairs = [(row[0], row[1]) for row in filled if len(row) == 2]
    beside = list(zip(*filled, strict=False)) if len(filled) == 2 else []
    return _of_page([*pairs, *beside], is_certain=len(filled) == 1 or pairs[:1] in _TITLES)


def _of_page(lines: Sequence[Statement], *, is_certain: bool = False) -> Iterator[Statement]:
    """Yield the names and values that are about the page and not about what it describes.

    They are if one name is of a property that documents have. That a page is a draft says how complete it is.
    """
    is_certain = is_certain or any(not _COMPANY.isdisjoint(_words(name)[-1:]) for name, _ in lines)
    for name, value in lines:
        restricts = len(value.split()) <= MAX_VALUE and _RESTRICTING.search(value.lower())
        if (is_certain or restricts or _OF_PAGES.search(name.lower())) and _normalised(value) != "draft":
            yield name, value


NOBODY = "nobody"  # a reader name that nobody has

_READERS_KEY = "readers"
_FRONT_MATTER = re.compile(r"\A\s*^---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_ASSUMED = (datetime(1999, 1, 2), datetime(2004, 10, 11))  # noqa: DTZ001 — they stand for what a date lacks
_UNDATED = "Its date `updated: {}` is not understood or ambiguous, so it counts as undated: write it as 2026-01-31."
_OF_PEOPLE = re.compile(
    r"(?<![^\W_])(?:owners?|teams?|contacts?|maintainers?|slack|channels?|e?mail|leads?|groups?|approvers?|on[-_]?call)(?![^\W_])",
    re.IGNORECASE,
)
_READER = re.compile(r"public|channel:\S.*|person:[a-z]+:\S+")


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a document. An empty title, and readers that are None, were not stated.

    `note`: what was not understood, although the document can be read; empty if nothing.
    """

    title: str = ""
    owner: str = ""
    updated_at: datetime | None = None
    readers: frozenset[str] | None = None
    note: str = ""


def narrowed(rights: frozenset[str], stated: frozenset[str]) -> frozenset[str]:
    """Return who may read a document by its rights and by the readers that it states itself, which cannot widen them."""
    both = stated if PUBLIC in rights else rights & stated or frozenset({NOBODY})
    return rights if PUBLIC in stated else both


@dataclass(frozen=True, slots=True)
class Stated:
    """The statements of a document about itself: `values` by the names of its properties, and `others` in any other form.

    Only `values` can name readers. Each of both may say that not everybody may read the document.
    """

    values: Sequence[tuple[str, Any]] = ()
    others: Iterable[Statement] = ()


def split_front_matter(text: str) -> tuple[Stated, str]:
    """Return what YAML front matter and the text below state, and that text. Raises MalformedInput for invalid YAML.

    Leading characters without width are dropped: byte-order marks, joiners, direction marks.
    """
    text = _LINE_END.sub("\n", text)
    text = text[next((at for at, sign in enumerate(text) if unicodedata.category(sign) != "Cf"), len(text)) :]
    match = _FRONT_MATTER.match(text)
    if match is None:
        return Stated((), chain(leading_statements(text), statements_above(text))), text
    values, others = _mapping(match[1])
    rest = text[match.end() :]
    outside = chain(unparsed_readers(match[1].split("\n")), leading_statements(rest), statements_above(rest))
    return Stated(values, chain(others, outside)), rest


def _mapping(front_matter: str) -> tuple[list[tuple[str, Any]], Iterable[Statement]]:
    """Return the properties in YAML, and the values at any depth. Raises MalformedInput."""
    try:
        refuse_deep_yaml(front_matter)
        # BaseLoader yields only strings, lists and mappings, so nothing is interpreted.
        loader = yaml.BaseLoader(front_matter)
        node = loader.get_single_node()
        values: Any = loader.construct_document(node) if node is not None else {}
    except (yaml.YAMLError, RecursionError) as error:
        # The error's own text quotes the document.
        line = (
            f", line {error.problem_mark.line + 2}"
            if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark
            else ""
        )
        raise MalformedInput(f"The front matter is not YAML{line}.") from error
    if not isinstance(values, dict):
        raise MalformedInput("The front matter is not a mapping of names to values.")
    # A name that is written twice is in `values` once.
    written = [(str(key.value), values.get(key.value)) for key, _ in node.value] if node is not None else []
    return written, named_values(node) if node is not None else ()


def people_named(stated: Stated) -> str:
    """Return the properties that name people, teams or channels, each as a paragraph above the text of a document."""
    return "".join(
        f"{plain(name).replace('_', ' ').capitalize()}: {', '.join(named)}\n\n"
        for name, value in stated.values
        if _OF_PEOPLE.search(plain(name))
        and (named := [*filter(None, map(_text, value if isinstance(value, list) else [value]))])
    )


def properties_of(stated: Stated, open_labels: Collection[str] = ()) -> Properties:
    """Return the properties that a document states, ignoring the case of names.

    Raises MalformedInput for readers that are invalid or named twice, and, if none are named, for any statement that
    speaks of access and is not certainly open, because the document might be shown to everybody otherwise. `open_labels`
    are further values that are open.
    """
    names = [plain(name).lower() for name, _ in stated.values]
    values = dict(zip(names, (value for _, value in stated.values), strict=True))
    if names.count(_READERS_KEY) > 1:
        raise MalformedInput("The document names `readers` twice.")
    if _READERS_KEY not in values:
        for name, value in chain(stated.values, stated.others):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str):
                    refuse_restriction(name, item, open_labels)
    updated_at = _moment(written := _text(values.get("updated")))
    return Properties(
        title=_text(values.get("title")),
        owner=_text(values.get("owner")),
        updated_at=updated_at,
        readers=_readers(values[_READERS_KEY]) if _READERS_KEY in values else None,
        note=_UNDATED.format(written[:40]) if written and updated_at is None else "",
    )


def _text(value: Any) -> str:
    """Return a string; empty for other values, because nested aliases can expand beyond memory."""
    return value.strip() if isinstance(value, str) else ""


def _moment(text: str) -> datetime | None:
    """Return the moment that a date names; None if it names none, or may name several."""
    try:
        try:
            moments = {datetime.fromisoformat(text)}
        except ValueError:
            moments = _readings(text)
        parsed = min(moments) if len(moments) == 1 else None
        return parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, Warning):
        return None


def _readings(text: str) -> set[datetime]:
    """Return every moment that a date may name: 3/4 is in March or in April, and a missing year can be any."""
    if not any(map(str.isdigit, text)) or text.isdigit():
        return set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unknown time zone
        return {
            dates.parse(text, dayfirst=day, yearfirst=year, default=default)
            for day, year, default in product((False, True), (False, True), _ASSUMED)
        }


def _readers(value: Any) -> frozenset[str]:
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    readers = frozenset(stripped for name in names if (stripped := _text(name).strip(" []'\"")))
    if not readers or not all(isinstance(name, str) for name in names):
        raise MalformedInput(f"`readers` names nobody: {HOW}.")
    if unknown := sorted(name for name in readers if not _READER.fullmatch(name)):
        raise MalformedInput(f"`readers` names {unknown[0][:40]!r}, which is not a reader: {HOW}.")
    return readers
