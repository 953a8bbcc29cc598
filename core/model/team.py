"""Teams that can own an incident, their on-call rotas and routes, and the catalogues that name them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from core.model.conversation import Platform
from core.model.text import name_key, spellings

NOBODY = "nobody"  # the owner of an incident that no team owns
NO_TEAM = frozenset({NOBODY, "no one", "no team", "none", "not ours", "n/a"})  # equivalents in resolution notes
TAG = "tag:"  # prefix of a Teams tag id, which pings everybody with the tag


@dataclass(frozen=True, slots=True)
class Rota:
    """A rota of at least one of `people`, who take turns of equal `length` (above 0), over and over.

    The first turn begins at `start`. All others begin by the clocks of its time zone, even if these are changed.
    """

    people: tuple[str, ...]
    start: datetime
    length: timedelta

    def on_duty(self, at: datetime) -> tuple[str, ...]:
        """Return the person whose turn it is; nobody before the rota begins."""
        if at < self.start:
            return ()
        local = at.astimezone(self.start.tzinfo)  # a difference within one zone is measured by its clocks
        return (self.people[(local - self.start) // self.length % len(self.people)],)

    def next_turn(self, at: datetime) -> datetime:
        """Return the start of the next turn after `at`, or of the rota."""
        if at < self.start:
            return self.start
        local = at.astimezone(self.start.tzinfo)
        return self.start + ((local - self.start) // self.length + 1) * self.length


@dataclass(frozen=True, slots=True)
class Team:
    """A team.

    - `document`: its function document (Markdown): what it owns, what it does not own, and its vocabulary.
    - `channel`: the name of the channel in which to reach it.
    - `on_call`: the people to call, in order; with a `rota` they take turns. `members`: other known members.
    - `mentions`: the id that pings it on each platform: a user group in Slack; a person, or a tag after `TAG`, in
      Teams.
    - `aliases`: its former ids, and those of teams merged into it, whose past incidents it inherits.
    """

    id: str
    name: str
    document: str = ""
    services: frozenset[str] = frozenset()
    channel: str = ""
    on_call: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    mentions: Mapping[Platform, str] = field(default_factory=dict[Platform, str])
    rota: Rota | None = None
    members: frozenset[str] = frozenset()

    @property
    def people(self) -> frozenset[str]:
        """Return all known members."""
        return self.members.union(self.on_call)


class TeamRotas:
    """The OnCall port over plumbline.yaml: the teams' rotas, or else their people to call, independent of the time."""

    def __init__(self, teams: Sequence[Team]) -> None:
        self._teams = {team.id: team for team in teams if team.on_call}

    @property
    def name(self) -> str:
        return "plumbline.yaml"

    @property
    def teams(self) -> frozenset[str]:
        return frozenset(self._teams)

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        team = self._teams.get(team_id)
        if team is None:
            return ()
        return team.rota.on_duty(at) if team.rota else team.on_call


def team_named(text: str, teams: Sequence[Team]) -> Team | None:
    """Return the team with this id, name or alias (see `name_key`), ignoring the word “team”.

    Current ids and names take precedence over aliases.
    """
    name = name_key(text).strip(" .,@#").removeprefix("team ").removesuffix(" team").strip()
    by_id = next((team for team in teams if name == name_key(team.id)), None)
    by_name = next((team for team in teams if name == name_key(team.name)), None)
    return by_id or by_name or next((team for team in teams if name in map(name_key, team.aliases)), None)


def current_team(team_id: str, teams: Sequence[Team]) -> Team | None:
    """Return the team that has this id, or that inherited it."""
    by_id = next((team for team in teams if team.id == team_id), None)
    return by_id or next((team for team in teams if team_id in team.aliases), None)


def current_ids(teams: Sequence[Team]) -> dict[str, str]:
    """Return a map from every current and former team id to the current id, consistent with `current_team`."""
    former = {alias: team.id for team in reversed(teams) for alias in team.aliases}
    return former | {team.id: team.id for team in teams}


def means_nobody(text: str) -> bool:
    """Return whether a note says that no team owned the incident."""
    return name_key(text).strip(" .,@#") in NO_TEAM


@dataclass(frozen=True, slots=True)
class Route:
    """A route for incidents that satisfy all of `match`. The first matching route applies.

    The incident is posted to the first available one of `channels`, and to all of `also` on every platform. `match`
    maps labels, `source`, `service`, `severity` or `team` to accepted values, which are compared as names.
    """

    channels: tuple[str, ...]
    match: tuple[tuple[str, frozenset[str]], ...] = ()
    also: tuple[str, ...] = ()

    def matches(self, facts: Mapping[str, frozenset[str]]) -> bool:
        """Return whether the route applies to these facts (see `core.model.silences.routing_facts`)."""
        return all(
            not frozenset(map(name_key, accepted)).isdisjoint(map(name_key, facts.get(name, ())))
            for name, accepted in self.match
        )


Dependencies = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The teams, service dependencies (caller → callees) and code owners of a catalogue; what could not be read of it."""

    teams: tuple[Team, ...] = ()
    dependencies: Dependencies = field(default_factory=dict[str, tuple[str, ...]])
    code: tuple[CodeOwners, ...] = ()
    left_out: tuple[str, ...] = ()


def shortest_names(paths: Iterable[str]) -> dict[str, str]:
    """Return for each path its last part, or the whole path if another one has the same last part. Case is ignored."""
    spelled = {path.casefold(): path for path in paths}
    ends = Counter(path.rpartition("/")[2] for path in spelled)
    return {
        path: path.rpartition("/")[2] if ends[key.rpartition("/")[2]] == 1 else path for key, path in spelled.items()
    }


def merged_teams(written: Sequence[Team], discovered: Iterable[Team]) -> tuple[Team, ...]:
    """Merge teams: written ones, completed from the found ones, then those that are only found.

    A found team is the same as a written one if its id or name matches the id, name or alias of that one. A service
    that plumbline.yaml assigns to a team belongs to no other team.
    """
    teams = {team.id: team for team in written}
    claimed = {name_key(service) for team in written for service in team.services}
    for each in discovered:
        other = replace(each, services=frozenset(name for name in each.services if name_key(name) not in claimed))
        match = teams.get(each.id) or team_named(each.id, written) or team_named(each.name, written)
        teams[match.id if match else each.id] = _completed(teams[match.id], other) if match else other
    return tuple(teams.values())


def merged_dependencies(written: Dependencies, discovered: Iterable[Dependencies]) -> dict[str, tuple[str, ...]]:
    """Merge dependencies. Those in plumbline.yaml replace the service's dependencies from catalogues."""
    calls: dict[str, tuple[str, ...]] = {}
    for each in discovered:
        for service, callees in each.items():
            calls[service] = tuple(dict.fromkeys((*calls.get(service, ()), *callees)))
    return calls | dict(written)


def spelled_alike(teams: Sequence[Team], dependencies: Dependencies) -> tuple[tuple[Team, ...], Dependencies]:
    """Return both with one spelling of each service: that of the first team that has it."""
    spelling = spellings([*(service for team in teams for service in sorted(team.services)), *dependencies])

    def spelled(service: str) -> str:
        return spelling.get(name_key(service), service)

    calls = {spelled(service): tuple(map(spelled, callees)) for service, callees in dependencies.items()}
    return tuple(replace(team, services=frozenset(map(spelled, team.services))) for team in teams), calls


def named_code(code: CodeOwners, teams: Sequence[Team], given: Mapping[str, str]) -> CodeOwners:
    """Return the rules with team ids as owners.

    `given` maps owners to teams; otherwise the shortest name of the owner is matched with the teams' names. Owners that
    are not a team are dropped.
    """
    names = shortest_names(owner.lstrip("@") for owner in code.owners)

    def team_of(owner: str) -> str:
        team = team_named(given.get(owner) or names.get(owner.lstrip("@"), ""), teams)
        return team.id if team else ""

    return code.named(team_of)


def _completed(team: Team, other: Team) -> Team:
    return replace(
        team,
        document=team.document or other.document,
        services=team.services | other.services,
        channel=team.channel or other.channel,
        on_call=team.on_call or other.on_call,
        mentions={**other.mentions, **team.mentions},
        members=team.members | other.members,
    )


MAX_RULES = 10_000  # per file
MAX_PATTERN = 300  # characters
MAX_PARTS = 40  # path components considered

_SECTION = re.compile(r"^\^?\[(?P<name>[^\]]{1,200})\](?:\[\d{1,3}\])?(?P<owners>(?:\s.*)?)$")
_SPECIAL = re.compile(r"\\(.)|\[")  # an escaped character, or a bracket, which has no meaning in a pattern
_WILDCARD = re.compile(r"[*?\\]")
_GAP = re.compile(r"(?<!\\)\s+")  # between a pattern and its owners; a space inside a pattern is escaped


@dataclass(frozen=True, slots=True)
class OwnershipRule:
    """A rule.

    In each `section`, the last matching rule applies; a rule without owners means that nobody owns the path. A rule that
    `excludes` takes the path from the section for good.
    """

    pattern: str
    owners: tuple[str, ...]
    section: str = ""
    excludes: bool = False

    @property
    def covers_everything(self) -> bool:
        return not self.pattern.strip("/*")


@dataclass(frozen=True, slots=True)
class _Index:
    """Rules indexed by a component that a matching path must start with or contain; `others` can match any path.

    Large repositories have thousands of rules, few of which match a path.
    """

    rules: tuple[OwnershipRule, ...]
    by_beginning: Mapping[str, Sequence[int]]
    by_name: Mapping[str, Sequence[int]]
    others: Sequence[int]

    @classmethod
    def of(cls, rules: tuple[OwnershipRule, ...]) -> _Index:
        by_beginning: defaultdict[str, list[int]] = defaultdict(list)
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        others: list[int] = []
        for number, rule in enumerate(rules):
            first = next((step for step in rule.pattern.split("/") if step), "*")
            if _WILDCARD.search(first):
                others.append(number)
            else:
                (by_beginning if _is_anchored(rule.pattern) else by_name)[first].append(number)
        return cls(rules, by_beginning, by_name, others)

    def candidates(self, parts: Sequence[str]) -> Iterator[OwnershipRule]:
        """Return the rules that may match a path, in file order."""
        numbers = {*self.others, *self.by_beginning.get("".join(parts[:1]), ())}
        numbers.update(number for part in parts for number in self.by_name.get(part, ()))
        return (self.rules[number] for number in sorted(numbers))


@dataclass(frozen=True, slots=True)
class CodeOwners:
    """The rules of one repository, which contains the code of `services` (empty: of any service)."""

    rules: tuple[OwnershipRule, ...]
    services: frozenset[str] = frozenset()
    _index: _Index = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", _Index.of(self.rules))

    @classmethod
    def parsed(
        cls,
        text: str,
        services: frozenset[str] = frozenset(),
        *,
        may_exclude: bool = True,
        matches_below: bool = False,
    ) -> CodeOwners:
        """Parse the rules, skipping lines that cannot be parsed, as code forges do.

        Forges differ: a rule `may_exclude` paths, or is skipped then; and a path without a leading slash `matches_below` every
        folder, which it also does in a file with sections.
        """
        return cls(tuple(_rules(text, may_exclude=may_exclude, matches_below=matches_below))[:MAX_RULES], services)

    @property
    def owners(self) -> tuple[str, ...]:
        """Return all distinct owners."""
        return tuple(dict.fromkeys(owner for rule in self.rules for owner in rule.owners))

    def named(self, name: Callable[[str], str]) -> CodeOwners:
        """Return the rules with each owner replaced by `name(owner)`; owners with an empty name are dropped."""
        names = {owner: name(owner) for owner in self.owners}
        return replace(
            self,
            rules=tuple(
                replace(rule, owners=tuple(dict.fromkeys(names[owner] for owner in rule.owners if names[owner])))
                for rule in self.rules
            ),
        )

    def rules_for(self, path: str) -> tuple[OwnershipRule, ...]:
        """Return the rules that apply to a repository path: at most one per section."""
        parts = [part for part in path.split("/") if part not in {"", "."}][:MAX_PARTS]
        matching = [rule for rule in self._index.candidates(parts) if _covers(rule.pattern, parts)]
        excluded = {rule.section for rule in matching if rule.excludes}
        last = {rule.section: rule for rule in matching}
        return tuple(rule for rule in last.values() if rule.owners and rule.section not in excluded)

    def rules_for_traced(self, path: str) -> tuple[OwnershipRule, ...]:
        """Return the rules for a path with an unknown prefix, such as in a stack trace: the longest matching suffix
        counts.

        Rules that match everything are ignored, because the path may belong to another repository.
        """
        parts = [part for part in path.split("/") if part not in {"", "."}][-MAX_PARTS:]
        for start in range(len(parts)):
            rules = [rule for rule in self.rules_for("/".join(parts[start:])) if not rule.covers_everything]
            if rules:
                return tuple(rules)
        return ()


def _rules(text: str, *, may_exclude: bool, matches_below: bool) -> Iterator[OwnershipRule]:
    lines = [line for each in text.splitlines() if (line := each.strip()) and not line.startswith("#")]
    matches_below = matches_below or any(map(_SECTION.match, lines))
    section, default = "", ()
    for line in lines:
        if heading := _SECTION.match(line):
            section, default = heading["name"].casefold(), _owners(heading["owners"].split())
            continue
        pattern, *owners = _GAP.split(line)
        excludes = pattern.startswith("!")
        pattern = pattern.removeprefix("!")
        if len(pattern) > MAX_PATTERN or "***" in pattern or (excludes and not may_exclude):
            continue
        if matches_below and not pattern.startswith("/") and _is_anchored(pattern):
            pattern = f"**/{pattern}"
        yield OwnershipRule(pattern, _owners(owners) or default, section, excludes)


def _owners(words: Sequence[str]) -> tuple[str, ...]:
    """Return the owners before a comment. Users, groups and addresses all contain @."""
    named: list[str] = []
    for word in words:
        if word.startswith("#"):
            break
        if "@" in word:
            named.append(word)
    return tuple(named)


def _is_anchored(pattern: str) -> bool:
    """Return whether a pattern matches from the repository root only."""
    return "/" in pattern.rstrip("/")


def _covers(pattern: str, parts: Sequence[str]) -> bool:
    """Return whether a pattern matches the path or one of its parent folders. Takes time proportional to both."""
    steps = [step for step in pattern.split("/") if step]
    if not steps:
        return bool(parts)
    if not _is_anchored(pattern):
        steps = ["**", *steps]
    covers_below = steps[-1] != "*" or pattern.endswith("/")
    if pattern.endswith("/"):
        steps.append("*")
    elif steps[-1] == "**":
        steps[-1] = "*"  # the content of a folder, not a file of that name
    globs = [_SPECIAL.sub(_literally, step) for step in steps]
    reached = _skipping({0}, steps)
    for number, part in enumerate(parts, start=1):
        reached = _skipping({after for step in reached for after in _after(step, globs, part)}, steps)
        if len(steps) in reached and (covers_below or number == len(parts)):
            return True
    return False


def _literally(match: re.Match[str]) -> str:
    """Return a character that `fnmatchcase` takes for itself."""
    character = match[1] or match[0]
    return f"[{character}]" if character in "*?[" else character


def _after(step: int, globs: Sequence[str], part: str) -> Iterator[int]:
    if step < len(globs) and globs[step] == "**":
        yield step
    elif step < len(globs) and fnmatchcase(part, globs[step]):
        yield step + 1


def _skipping(reached: set[int], steps: Sequence[str]) -> set[int]:
    """Return the positions including those behind a `**`, which also matches no folder."""
    positions = set(reached)
    for step in sorted(reached):
        after = step
        while after < len(steps) and steps[after] == "**":
            after += 1
            positions.add(after)
    return positions
