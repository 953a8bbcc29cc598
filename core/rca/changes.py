"""The changes around an incident: their records joined into revisions, and the effects of their diffs.

A revision is a commit with the deployments that shipped it, or any other change. Its effects are directed: what its diff
takes away, adds, lowers or raises, and the failures that this makes. Lines that cannot change what a program does are
inert: comments, blanks, log statements, documentation, tests, and lines that were only moved or formatted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from core.model.team import CodeOwners, Team
from core.ports import Change
from core.rca.failures import EFFECTS, Kind

MIN_HASH = 7  # characters of a hash that identify a commit
_WORD = re.compile(r"[\w-]{4,64}")


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision. `change` is its most informative record: a commit rather than its deployment.

    `live` maps each service that it reaches to the time when it came into force there; empty if it names no service.
    `at` is the first of those times, and `shipped_by` are its deployments. `waits` is set for a commit that no
    deployment shipped, although deployments name commits.
    """

    change: Change
    at: datetime
    live: Mapping[str, datetime]
    shipped_by: tuple[Change, ...] = ()
    waits: bool = False


def revisions(changes: Sequence[Change], services: Iterable[str]) -> list[Revision]:
    """Return the revisions, in the order in which they came into force.

    A deployment names all the commits that it ships, or only the latest, or none; in the last two cases, it ships its
    services' commits since the previous deployment, and those of no service, such as a library's. A deployment without
    commits is a revision itself.
    """
    names = frozenset(services) | {name for change in changes for name in change.touched}
    ordered = sorted(changes, key=lambda change: change.at)
    commits = {change.id: change for change in ordered if change.is_commit}
    shipped: dict[str, list[Change]] = {}  # deployments by commit
    knows_commits: set[str] = set()  # services whose deployments name commits
    for deploy in ordered:
        for commit in _shipped(deploy, ordered, commits, names):
            shipped.setdefault(commit, []).append(deploy)
            knows_commits.update(deploy.touched)
    joined = {id(deploy) for deploys in shipped.values() for deploy in deploys}
    in_force: list[Revision] = []
    for change in ordered:
        if id(change) in joined:
            continue
        deploys = tuple(shipped.get(change.id, ())) if change.is_commit else ()
        touched = touched_services(change, names)
        live: dict[str, datetime] = {}
        for record in deploys or (change,):
            at = max(record.at, change.at)  # a deployment cannot ship what was not yet written
            for name in touched_services(record, names) or touched:
                live[name] = min(at, live.get(name, at))
        at = max(change.at, min((deploy.at for deploy in deploys), default=change.at))
        waits = change.is_commit and not deploys and bool(knows_commits & set(touched))
        in_force.append(Revision(change, at, live, deploys, waits))
    return sorted(in_force, key=lambda revision: revision.at)


def touched_services(change: Change, names: frozenset[str]) -> tuple[str, ...]:
    """Return the services that a change names, otherwise those whose name is a folder in the path of one of its files."""
    if change.touched:
        return change.touched
    folders = {part.replace("_", "-").lower() for path in change.files for part in path.split("/")[:-1]}
    return tuple(sorted(name for name in names if name.replace("_", "-").lower() in folders))


def placed(change: Change, names: frozenset[str], code: Sequence[CodeOwners], teams: Sequence[Team]) -> Change:
    """Return a change with its services, derived from its paths if it names none.

    A folder named after a service counts first, otherwise the services of the paths' owners in that repository.
    """
    if change.touched or touched_services(change, names):
        return change
    services = {team.id: team.services for team in teams}
    owned = {
        service
        for each in code
        for path in change.files
        for rule in each.rules_for(path)
        if not rule.covers_everything
        for owner in rule.owners
        for service in services.get(owner, frozenset[str]()) & (each.services or services.get(owner, frozenset[str]()))
    }
    return replace(change, services=tuple(sorted(owned)))


def _shipped(
    deploy: Change, ordered: Sequence[Change], commits: Mapping[str, Change], names: frozenset[str]
) -> list[str]:
    """Return the ids of the commits that a deployment ships."""
    if not deploy.is_deployment:
        return []
    words = _WORD.findall(f"{deploy.title}\n{deploy.detail}")
    listed = [commit for named in (*deploy.commits, *words) if (commit := _commit(named, commits))]
    head = _commit(deploy.revision, commits) or _commit(deploy.id, commits)
    if listed:
        return list(dict.fromkeys(filter(None, [*listed, head])))
    services = set(deploy.touched)
    earlier = [
        commits[before].at if (before := _commit(change.revision, commits)) else change.at
        for change in ordered
        if change.at < deploy.at and change.is_deployment and services & set(change.touched)
    ]
    since, until = max(earlier, default=None), commits[head].at if head else deploy.at
    between = [
        commit.id
        for commit in commits.values()
        if (since is None or since < commit.at)
        and commit.at <= until
        and (services & set(touched_services(commit, names)) or not touched_services(commit, names))
    ]
    return list(dict.fromkeys(filter(None, [*between, head])))


def _commit(named: str, commits: Mapping[str, Change]) -> str:
    """Return the id of the commit with this whole or short hash; empty if there is none."""
    if not named or named in commits:
        return named
    if len(named) < MIN_HASH:
        return ""
    return next(
        (
            commit
            for commit in commits
            if commit.startswith(named) or (len(commit) >= MIN_HASH and named.startswith(commit))
        ),
        "",
    )


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
_MESSAGE = re.compile(r"(\b[\w.]{0,80}(?:fail|err|exception|panic|abort)\w{0,20}(?:\.\w{1,20})?!?\().*", re.IGNORECASE)
"""Matches what an error is called with: to say it in other words changes nothing else."""
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_LOCAL = re.compile(r"\s*(?:(?:var|let|const|final|val)\s+)?([A-Za-z_]\w*)\s*:?=(?!=)")
_DEFINED = re.compile(r"\s*(?:(?:async|private|static|export|public)\s+){0,3}(?:def|func|function|fn)\s+(\w+)")
_SET_TO = re.compile(
    r"(?<![\w./-])(?P<name>[\w./-]{0,80}\w)[:=]?\s{1,4}(?P<before>[^\s,;()]{1,60})\s{0,4}(?:->|→)\s{0,4}"
    r"(?P<after>[^\s,;()]{1,60})"
)
_ASSIGNED = re.compile(r"\s*[\"']?(?P<name>[\w./-]{0,80}\w)[\"']?\s*[:=]\s*(?P<value>[^\s=()]{1,40}?)[,;]?\s*")
_SIZED = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([a-zA-Z%]{0,3})\b")
_NUMBER = re.compile(r"(?P<value>-?\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z%]*)")


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
    inert = is_test = False
    for line in diff.splitlines():
        if match := _FILE.match(line):
            inert, is_test = _INERT_FILE.search(match["path"]) is not None, False
        elif not inert and line[:1] in "+-" and line[:1] and not _INERT_LINE.match(line[1:].strip()):
            if defined := _DEFINED.match(line[1:]):
                is_test = defined[1].lower().startswith("test")
            if not is_test:
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
    if has_moved and not gone and (defined := {match[1] for text in come if (match := _DEFINED.match(text))}):
        return all(_DEFINED.match(text) or defined.intersection(_NAME.findall(text)[:1]) for text in come)
    pairs = set(zip(_NAME.findall("\n".join(gone)), _NAME.findall("\n".join(come)), strict=False))
    renamed = {old for old, new in pairs if old != new}
    local = {match[1] for text in gone if (match := _LOCAL.match(text))}
    is_same = bool(gone) and [_NAME.sub("#", text) for text in gone] == [_NAME.sub("#", text) for text in come]
    return (
        is_same and len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs}) and renamed <= local
    )


def _plain(text: str) -> str:
    return "".join(_MESSAGE.sub(r"\1", text).split()).rstrip(",;")


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
        for effect in EFFECTS
        if direction == effect.direction and effect.line.match(text)
        for kind in effect.makes
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
