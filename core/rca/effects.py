"""The directed effects of a change: what its diff takes away, adds, lowers or raises, and the failures that this makes.

Lines that cannot change what a program does are inert: comments, blanks, log statements, documentation, tests, and lines
that were only moved or formatted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.ports import Change
from core.rca.failures import Kind

SWITCHED = frozenset({"on", "off", "true", "false", "enabled", "disabled"})  # values of a switch
_FILE = re.compile(r"(?:\+\+\+|---) (?:[ab]/)?(?P<path>\S+)")
_INERT_FILE = re.compile(
    r"(?:^|/)(?:docs?|tests?|__tests__|spec|testdata|fixtures)/|(?:^|/)test_[^/]*$|[._-](?:test|tests|spec)\.\w{1,5}$"
    r"|\.(?:md|rst|adoc)$|(?:^|/)(?:LICEN[CS]E|CHANGELOG|README|CODEOWNERS)[^/]*$"
)
_INERT_LINE = re.compile(
    r"""\W*$|(?:\#(?!\s{0,2}(?:include|define|if|else|endif))|//|/\*|\*[\s/]|--\s|<!--|\"{3}|'{3})"""
    r"|(?:self\.|this\.)?_?(?:log(?:ger|ging)?|console|slog|LOG(?:GER)?)\.(?!fatal|panic)\w{1,12}\(",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_DEFINED = re.compile(r"\s*(?:(?:async|private|static|export|public)\s+){0,3}(?:def|func|function|fn)\s+(\w+)")
_LOCAL = re.compile(r"\s*(?:(?:var|let|const|final|val)\s+)?([A-Za-z_]\w*)\s*:?=(?!=)")
_SPACE = re.compile(r"\s+")
_SET_TO = re.compile(
    r"(?<![\w./-])(?P<name>[\w./-]{0,80}\w)[:=]?\s{1,4}(?P<before>[^\s,;()]{1,60})\s{0,4}(?:->|→)\s{0,4}"
    r"(?P<after>[^\s,;()]{1,60})"
)
_ASSIGNED = re.compile(r"\s*[\"']?(?P<name>[\w./-]{0,80}\w)[\"']?\s*[:=]\s*(?P<value>[^\s=()]{1,40}?)[,;]?\s*")
_NUMBER = re.compile(r"(?P<value>-?\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z%]*)")
_SIZED = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([a-zA-Z%]{0,3})\b")


def _row(line: str) -> tuple[frozenset[str], re.Pattern[str], frozenset[Kind]]:
    directions, kinds, words = line.split(maxsplit=2)
    return (
        frozenset(directions.split("|")),
        re.compile(rf"\A(?:{words})", re.IGNORECASE),
        frozenset(Kind[kind] for kind in kinds.split("|")),
    )


_MAKES = tuple(
    map(
        _row,
        r"""
removed  CODE|CRASH|FORM|MISSING         if\b|try\b|except\b|catch\b|rescue\b|default|optional|\S+\?[.?]|guard|\w+ \|\| |.{0,80}(?:is None|== ?nil|null|\?\?)
removed  POOL|MEMORY|LIMIT|DISK          .{0,60}(?:close|release|free|dispose|unsubscribe|evict|expire|ttl|retention)|with\b|finally\b|defer\b|using\b
removed  LOAD|TIMEOUT|QUOTA|LIMIT        .{0,40}(?:cache|memo|batch|bulk|prefetch|debounce|throttle|limit\b|page)
removed  MISSING|FORM|SCHEMA|REQUEST     .{0,40}(?:route|regist|handler|subscribe|export|import|provide|column|field|env)|[\"'][\w/.-]+[\"']|\w+:
removed  ACCESS                          .{0,60}(?:role|grant|permission|scope|allow|policy|principal|auth)
added    SCHEMA|MISSING                  .{0,40}drop (?:column|table)|.{0,60}rename\b
added    TIMEOUT|LOAD|LOCK               .{0,40}drop index
added    LOCK|TIMEOUT                    .{0,40}(?:lock|synchronized|mutex|transaction|create (?:unique )?index|alter table|for update)
added    LOAD|TIMEOUT|QUOTA|LIMIT        .{0,60}\bfor\b.{1,60}(?:\bin\b|;|:=)|while\b|.{0,60}(?:fetch|query|select |load\(|\.map\(|poll|sleep|retry)
added    CODE|FORM|REQUEST|MISSING|ACCESS .{0,80}(?:require|raise\b|throw\b|assert|valid|strict|parse|not null|\w\[[\"']|\w+_id)
added    CODE|CRASH                      (?!if\b).{0,80}(?:\w\.\w| / \w|\bcursor|close\()
added    ACCESS                          .{0,60}(?:deny|forbid|audience|verify|require\w*auth|authori)
added    MEMORY|LIMIT|DISK               .{0,60}(?:append|push|cache|open\(|\]\s*=|buffer|listener)
lowered  POOL|LIMIT|QUOTA|LOAD|MEMORY    .{0,60}(?:pool|conn|worker|thread|limit|max|size|capacity|budget|rate|burst|concurren|replica|buffer)
lowered  MEMORY|CRASH|LIMIT              .{0,60}(?:memory|heap|xmx)
lowered  DISK                            .{0,60}(?:disk|storage|volume)
lowered  HOST|LOAD|TIMEOUT               .{0,60}cpu
lowered  TIMEOUT|NETWORK                 .{0,60}(?:time-?_?out|deadline|wait)
lowered  LOAD|QUOTA|LIMIT                .{0,60}(?:interval|period|poll|delay|ttl|sleep|backoff|seconds)
raised   LOAD|QUOTA|LIMIT|POOL|MEMORY    .{0,60}(?:retr|attempt|concurren|parallel|worker|batch|page|fan|consumer|prefetch)
raised   PLACEMENT|QUOTA                 .{0,60}(?:memory|cpu|request|replica|min)
raised   POOL                            .{0,60}(?:time-?_?out|deadline|keep-?alive)
changed  NAME|NETWORK|MISSING|ACCESS     .{0,60}(?:url|uri|host|endpoint|port|proxy|dns|address|broker|target)
changed  ACCESS|CERTIFICATE              .{0,60}(?:key|secret|token|password|cert|audience|scope|role|issuer)
changed  IMAGE|CODE|FORM                 .{0,60}(?:image|tag|version)
changed  MISSING|FORM|SCHEMA|REQUEST     .{0,60}(?:field|column|name|path|route|topic|queue|schema|format|type)
switched CODE|TIMEOUT|LOAD|MISSING|FORM  .
""".strip().splitlines(),
    )
)
"""By direction: the failures that a line can make, and the lines that do."""


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting that a change gave another value. Untrusted."""

    name: str
    before: str
    after: str

    @property
    def moved(self) -> str:
        """“lowered”, “raised”, “switched” or “changed”."""
        if {self.before.casefold(), self.after.casefold()} <= SWITCHED:
            return "switched"
        before, after = _NUMBER.fullmatch(self.before), _NUMBER.fullmatch(self.after)
        if before is None or after is None or before["unit"] != after["unit"]:
            return "changed"
        return "lowered" if float(after["value"]) < float(before["value"]) else "raised"


def active_lines(diff: str) -> list[tuple[str, str]]:
    """Return the lines of a diff that can change what a program does, each with its sign."""
    lines: list[tuple[str, str]] = []
    inert = False
    for line in diff.splitlines():
        if match := _FILE.match(line):
            inert = _INERT_FILE.search(match["path"]) is not None
        elif not inert and line[:1] in "+-" and line[:1] and not _INERT_LINE.match(line[1:].strip()):
            lines.append((line[0], line[1:]))
    counts = {sign: Counter(_plain(text) for each, text in lines if each == sign) for sign in "+-"}
    moved = counts["+"] & counts["-"]
    kept: list[tuple[str, str]] = []
    left = {sign: moved.copy() for sign in "+-"}
    for sign, text in lines:
        if left[sign][_plain(text)] > 0:
            left[sign][_plain(text)] -= 1
        else:
            kept.append((sign, text))
    return [] if _is_refactored(kept, has_moved=bool(moved)) else kept


def _is_refactored(lines: Sequence[tuple[str, str]], *, has_moved: bool) -> bool:
    """Return whether lines only rename variables of their own, or move others into a function and call it."""
    gone, come = ([text for each, text in lines if each == sign] for sign in "-+")
    defined = {match[1] for text in come if (match := _DEFINED.match(text))}
    if has_moved and not gone and defined:
        return all(_DEFINED.match(text) or defined.intersection(_NAME.findall(text)[:1]) for text in come)
    if not gone or [_NAME.sub("#", text) for text in gone] != [_NAME.sub("#", text) for text in come]:
        return False
    pairs = set(zip(_NAME.findall("\n".join(gone)), _NAME.findall("\n".join(come)), strict=True))
    renamed = {old: new for old, new in pairs if old != new}
    local = {match[1] for text in gone if (match := _LOCAL.match(text))}
    return len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs}) and renamed.keys() <= local


def _plain(text: str) -> str:
    return _SPACE.sub("", text).rstrip(",;")


def is_inert(change: Change) -> bool:
    """Return whether a change has a diff of inert lines alone, or touches inert files alone."""
    if change.diff:
        return any(line[:1] in "+-" for line in change.diff.splitlines() if line) and not active_lines(change.diff)
    return bool(change.files) and all(_INERT_FILE.search(path) for path in change.files)


def settings(change: Change) -> list[ChangedSetting]:
    """Return the settings that the text or the diff of a change gives another value."""
    stated = [
        ChangedSetting(match["name"], match["before"], match["after"].rstrip("."))
        for match in _SET_TO.finditer(f"{change.title}; {change.detail}")
        if _is_setting(match)
    ]
    return [*stated, *_set_in(active_lines(change.diff))]


def _set_in(lines: Sequence[tuple[str, str]]) -> Iterator[ChangedSetting]:
    """Yield the settings in the lines of a diff: the same name in a removed and in an added line."""
    gone: dict[str, str] = {}
    for sign, text in lines:
        if (match := _ASSIGNED.fullmatch(text)) is None:
            continue
        name, value = match["name"], match["value"].strip("\"'")
        if sign == "-":
            gone[name] = value
        elif (before := gone.pop(name, value)) != value:
            yield ChangedSetting(name, before, value)


def _is_setting(match: re.Match[str]) -> bool:
    """Return whether the match is the name of a setting, and not a word of a sentence."""
    name, before, after = match["name"], match["before"], match["after"].rstrip(".")
    has_shape = any(mark in name for mark in "._/-") or not (name.islower() or name.istitle())
    are_numbers = bool(_NUMBER.fullmatch(before) and _NUMBER.fullmatch(after))
    are_switched = has_shape and {before.casefold(), after.casefold()} <= SWITCHED
    return before != after and (are_numbers or are_switched or (has_shape and "." in name))


def makes(change: Change) -> frozenset[Kind]:
    """Return the kinds of failure that the directed effects of a change can make."""
    moves = [(each.moved, each.name) for each in settings(change)]
    set_names = {name for _, name in moves}
    for sign, text in active_lines(change.diff):
        if not any(name in text for name in set_names):
            moves.append(("removed" if sign == "-" else "added", text.strip()))
    moves += _resized(change.diff)
    if not change.diff:
        moves.append(("changed", f"{change.kind} {change.title} {change.detail}"))
    return frozenset(
        kind
        for direction, text in moves
        for directions, words, kinds in _MAKES
        if direction in directions and words.match(text)
        for kind in kinds
    )


def _resized(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the direction and the line of a pair of lines that differ in one number, such as “limits: {memory: 2Gi}”."""
    lines = active_lines(diff)
    gone = {_SIZED.sub("#", text): text for sign, text in lines if sign == "-"}
    for sign, text in lines:
        before = gone.get(_SIZED.sub("#", text)) if sign == "+" else None
        if before is None:
            continue
        for (old, old_unit), (new, unit) in zip(_SIZED.findall(before), _SIZED.findall(text), strict=True):
            if (old, old_unit) != (new, unit):
                scale = _UNITS.get(unit[:1].lower(), 1) / _UNITS.get(old_unit[:1].lower(), 1)
                yield ("lowered" if float(new) * scale < float(old) else "raised"), text.strip()


_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
