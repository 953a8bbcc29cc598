"""Statements of a document on who may access it, in any other form than `readers` in front matter.

Whatever speaks of access and is not understood must withhold the document, so each rule asks what is certainly open.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import accumulate, takewhile

import yaml

from core.model.errors import MalformedInput

HEAD_LINES = 200  # lines with text at the top of a document that are searched for metadata
HOW = "list `public`, `channel:NAME` or `person:PLATFORM:ID`"

_SIMILAR = 0.8  # names this similar to `readers` are misspellings of it
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_ACCESS = re.compile(
    r"\b(?:access|acls?|audiences?|authori[sz]ed|clearance|classifi(?:ed|cation)|confidential(?:ity)?|dissemination|embargo(?:ed)?|"
    r"entitle(?:d|ments?)|permi(?:ssions?|tted)|privacy|private|privileged|public|rbac|readable|readers?|restrict(?:ed|ions?|s)?|"
    r"secrecy|sensitiv(?:e|ity)|shar(?:eable|ing)|unlisted|viewable|viewers?|visibility)\b|"
    r"\b(?:zugriff|vertraulich(?:keit)?|geheim(?:haltung)?|leser|zielgruppe|"  # German, French, Spanish
    r"lecteurs?|confidentiel(?:le)?|confidentialite|acceso|lectores|confidencial(?:idad)?)\b|"
    r"^(?:allow(?:ed)?|auth(?:entication|ori[sz]ation)?|den(?:y|ied)|encrypt(?:ed)?|gated|groups|guests?|internal|nda|only|"
    r"pass(?:word|phrase)|paywall(?:ed)?|protected|tlp|visible)$|"
    r"^(?:only|(?:hid(?:e|den)|not|visible) (?:for|from|to))\b|(?<!amp )(?<!append )(?<!read )(?<!write )\bonly$|"
    r"\brequires?\b.{0,20}\b(?:auth|authentication|groups?|login|memberships?|permissions?|roles?)\b|"
    r"\b(?:allow(?:ed)?|auth|den(?:y|ied)|internal|limit(?:ed)?|login|members?|need|protected|read|security|shared?|"
    r"view|visible|who)\b.{0,60}\b(?:by|can|for|from|groups?|know|level|may|members?|only|people|required|roles?|staff|teams?|"
    r"to|users?|with)\b"
)
"""Words in the name of a property that speak of access."""
_THINGS = frozenset(
    "address api apis class cloud date dates dns domain endpoint file id ip key keys link log logs method modifier "
    "modifiers network page pages path point points policy port subnet time token tokens uri url urls".split()
)
"""Last words of names such as `access_log`, which name a thing."""
_WITHHOLDING = re.compile(
    r"\b(?:auth|authentication|classified|confidential|den(?:y|ied)|embargo(?:ed)?|encrypt(?:ed)?|gated|groups|hid(?:e|den)|"
    r"internal|limit(?:ed)?|members|nda|not|only|pass(?:word|phrase)|paywall(?:ed)?|private|privileged|protected|requires?|required|"
    r"restrict(?:ed|ions?|s)?|sensitive|unlisted|vertraulich|geheim)\b"
)
_OPENING = re.compile(r"\b(?:guests?|public|readable|shar(?:eable|ing)|viewable|visible)\b")
_OPEN = frozenset(
    "all anybody anyone clear everybody everyone open public tlp:clear tlp:white unrestricted white".split()
)
_MARK = re.compile(
    r"(?:(?:commercial in|company|highly|strictly) )?(?:classified|confidential|restricted)|top secret|"
    r"(?:employees?|eyes|internal|members|staff|team)(?: use)? only|need to know|do not (?:distribute|forward|share)|"
    r"tlp[: ]{1,2}(?:amber(?: strict)?|green|red)"
)
"""Values that withhold a document, whatever the property is called."""
_STATES = frozenset("mode scope state status".split())  # last words of names whose value may be `private`
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
_EXPORT = re.compile(r"export\s+(?:const|let|var|default)\b")


def refuse_restriction(name: str, value: str) -> None:
    """Raise MalformedInput if a property speaks of access, and its value is not certainly open; or marks the document."""
    if (speaks_of_access(name) and not _is_open(name, value)) or _is_mark(name, value):
        raise MalformedInput(f"`{name[:40]}` is not a known property: call it `readers`, and {HOW}.")


def refuse_restrictions_in(node: yaml.Node) -> None:
    """Raise MalformedInput if a property at any depth speaks of access, and is not certainly open.

    An alias is the node of its anchor, so each is visited once for each name that it belongs to at most.
    """
    waiting, seen = [("", node)], set[tuple[str, int]]()
    while waiting:
        name, each = waiting.pop()
        if (name, id(each)) in seen:
            continue
        seen.add((name, id(each)))
        if isinstance(each, yaml.ScalarNode) or not each.value:
            refuse_restriction(name, each.value if isinstance(each, yaml.ScalarNode) else "?")
        elif isinstance(each, yaml.SequenceNode):
            waiting += ((name, value) for value in each.value)
        else:
            named = ((str(key.value), value) for key, value in each.value)
            waiting += ((own if speaks_of_access(own) else name, value) for own, value in named)


def refuse_restrictions_above(text: str) -> None:
    """Raise MalformedInput if metadata outside front matter near the top names readers, or speaks of access.

    If the text begins like unparsed front matter, all of it is searched for readers.
    """
    rows = _rows(text)
    refuse_unparsed_readers(rows if rows and rows[0].startswith(_FENCES) else rows[:HEAD_LINES])
    for name, value in _metadata(rows[:HEAD_LINES]):
        refuse_restriction(name, value)


def refuse_unparsed_readers(rows: Iterable[str]) -> None:
    """Raise MalformedInput if a line begins with something like `readers:`.

    Only punctuation or a brace may precede it, because the word means nothing within a sentence.
    """
    for row in map(plain, rows):
        before = row[: match.start()] if (match := _READERS.search(row)) else "."
        if match and (before.startswith("{") or not any(map(str.isalnum, before))):
            raise MalformedInput(
                f"The document seems to name its readers, but not in valid front matter, so it is withheld from everybody. "
                f"Begin the file with a line `---`, then `readers: […]`, then `---`; {HOW}."
            )


def _rows(text: str) -> list[str]:
    return [row for line in text.split("\n") if (row := plain(line))]


def plain(text: str) -> str:
    """Return the text in compatibility form, without signs that have no width, and without white space around it."""
    visible = (sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    return "".join(visible).strip()


def speaks_of_access(name: str) -> bool:
    words = _words(name)
    if not words or words[-1] in _THINGS:
        return False
    misspelt = words[0][0] == "r" and SequenceMatcher(None, words[0][:20], "readers").ratio() >= _SIMILAR
    return misspelt or bool(_ACCESS.search(" ".join(words)))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(plain(name))]


def _is_open(name: str, value: str) -> bool:
    words, stance = " ".join(_words(name)), _normalised(value)
    if _WITHHOLDING.search(words):
        return stance in _OPEN | _NO
    return stance in _OPEN or (stance in _YES and bool(_OPENING.search(words)))


def _is_mark(name: str, value: str) -> bool:
    words, stance = _words(name), _GAP.sub(" ", _normalised(value))
    if words == ["secret"]:
        return stance in _YES
    return bool(_MARK.fullmatch(stance)) or (stance == "private" and not _STATES.isdisjoint(words[-1:]))


def _normalised(value: str) -> str:
    return plain(value).lower().strip(" \t\"'`;,)>[]")


def _metadata(rows: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and values in lines that can only be metadata: fields, and blocks like front matter."""
    at = len(list(takewhile(lambda row: _PROPERTY.match(row) and not row.startswith(("#", "{", "[")), rows)))
    yield from _pairs(rows[:at])
    while at < len(rows):
        length = _block(rows, at)
        if not rows[at].startswith(("```", "~~~")):
            yield from _pairs(rows[at : at + length])
        if length == 0 and (field := _FIELD.match(rows[at])):
            yield field["name"], field["value"]
        at += max(length, 1)


def _pairs(rows: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((pair["name"], pair["value"]) for row in rows for pair in _PAIR.finditer(row))


def _block(rows: list[str], at: int) -> int:
    """Return the number of lines in the block that begins here; 0 if none does."""
    first = rows[at]
    if _EXPORT.match(first) or (at == 0 and first.startswith("{")):
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
