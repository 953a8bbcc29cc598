"""CODEOWNERS: whose a path of a repository is, as GitHub and GitLab read the file.

https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners
https://docs.gitlab.com/user/project/codeowners/reference/
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

MAX_RULES = 10_000  # of one file
MAX_PATTERN = 300  # characters
MAX_PARTS = 40  # folders of a path that are looked at

_SECTION = re.compile(r"^\^?\[(?P<name>[^\]]{1,200})\](?:\[\d{1,3}\])?(?P<owners>(?:\s.*)?)$")
_ESCAPED = re.compile(r"\\([ #])")
_GAP = re.compile(r"(?<!\\)\s+")  # between a pattern and its owners; a blank in a pattern is escaped


@dataclass(frozen=True, slots=True)
class OwnershipRule:
    """Of each `section` the last rule that covers a path says whose it is; no owners: nobody's."""

    pattern: str
    owners: tuple[str, ...]
    section: str = ""

    @property
    def covers_everything(self) -> bool:
        return not self.pattern.strip("/*")


@dataclass(frozen=True, slots=True)
class _Index:
    """Rules by the name that a path must begin with, or must have somewhere, to be covered; the `others` are for any.

    Large repositories have thousands of rules, of which hardly any speaks of a path.
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
            if "*" in first or "?" in first:
                others.append(number)
            else:
                (by_beginning if _is_anchored(rule.pattern) else by_name)[first].append(number)
        return cls(rules, by_beginning, by_name, others)

    def candidates(self, parts: Sequence[str]) -> Iterator[OwnershipRule]:
        """In the order of the file."""
        found = {*self.others, *self.by_beginning.get("".join(parts[:1]), ())}
        found.update(number for part in parts for number in self.by_name.get(part, ()))
        return (self.rules[number] for number in sorted(found))


@dataclass(frozen=True, slots=True)
class CodeOwners:
    """The rules of one repository, which holds the code of `services`; of any where there are none."""

    rules: tuple[OwnershipRule, ...]
    services: frozenset[str] = frozenset()
    _index: _Index = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", _Index.of(self.rules))

    @classmethod
    def parsed(cls, text: str, services: frozenset[str] = frozenset()) -> CodeOwners:
        """Parse the rules; leave out a line that cannot be understood, as GitHub and GitLab do."""
        return cls(tuple(_rules(text))[:MAX_RULES], services)

    @property
    def owners(self) -> tuple[str, ...]:
        """Everybody whom the rules name, each once."""
        return tuple(dict.fromkeys(owner for rule in self.rules for owner in rule.owners))

    def named(self, name: Callable[[str], str]) -> CodeOwners:
        """The same with each owner under the name that `name` gives it; without those that it gives none."""
        names = {owner: name(owner) for owner in self.owners}
        return replace(
            self,
            rules=tuple(
                replace(rule, owners=tuple(dict.fromkeys(names[owner] for owner in rule.owners if names[owner])))
                for rule in self.rules
            ),
        )

    def rules_for(self, path: str) -> tuple[OwnershipRule, ...]:
        """The rules that say whose a path of the repository is; several where there are several sections."""
        parts = [part for part in path.split("/") if part not in {"", "."}][:MAX_PARTS]
        last = {rule.section: rule for rule in self._index.candidates(parts) if _covers(rule.pattern, parts)}
        return tuple(rule for rule in last.values() if rule.owners)

    def rules_for_traced(self, path: str) -> tuple[OwnershipRule, ...]:
        """The same for a path whose beginning is that of another machine: the longest end that a rule names counts.

        A rule that covers everything says nothing about a path that may be of another repository.
        """
        parts = [part for part in path.split("/") if part not in {"", "."}][-MAX_PARTS:]
        for start in range(len(parts)):
            found = [rule for rule in self.rules_for("/".join(parts[start:])) if not rule.covers_everything]
            if found:
                return tuple(found)
        return ()


def _rules(text: str) -> Iterator[OwnershipRule]:
    section, default = "", ()
    for line in text.splitlines():
        said = line.strip()
        if not said or said.startswith("#"):
            continue
        if heading := _SECTION.match(said):
            section, default = heading["name"].casefold(), _owners(heading["owners"].split())
            continue
        pattern, *owners = _GAP.split(said)
        if len(pattern) <= MAX_PATTERN and not pattern.startswith("!"):
            clean = _ESCAPED.sub(r"\1", pattern)
            yield OwnershipRule(clean, _owners(owners) if owners else default, section)


def _owners(words: Sequence[str]) -> tuple[str, ...]:
    """Up to a comment; users, groups and addresses all have an @ in them."""
    named: list[str] = []
    for word in words:
        if word.startswith("#"):
            break
        if "@" in word:
            named.append(word)
    return tuple(named)


def _is_anchored(pattern: str) -> bool:
    """Return whether it names a path from the top on, and not something of this name in any folder."""
    return "/" in pattern.rstrip("/")


def _covers(pattern: str, parts: Sequence[str]) -> bool:
    """Return whether a pattern names the path or a folder that it is in. Takes time in proportion to both."""
    steps = [step for step in pattern.split("/") if step]
    if not steps:
        return bool(parts)
    if not _is_anchored(pattern):
        steps = ["**", *steps]
    is_folder = pattern.endswith("/")
    covers_below = is_folder or "*" not in steps[-1]
    reached = _skipping({0}, steps)
    for number, part in enumerate(parts, start=1):
        reached = _skipping({after for step in reached for after in _after(step, steps, part)}, steps)
        inside = number < len(parts)
        if len(steps) in reached and (covers_below if inside else not is_folder):
            return True
    return False


def _after(step: int, steps: Sequence[str], part: str) -> Iterator[int]:
    if step < len(steps) and steps[step] == "**":
        yield step
    elif step < len(steps) and fnmatchcase(part, steps[step].replace("[", "[[]")):
        yield step + 1


def _skipping(reached: set[int], steps: Sequence[str]) -> set[int]:
    """With what lies behind a `**`, which stands for no folder as well."""
    found = set(reached)
    for step in sorted(reached):
        after = step
        while after < len(steps) and steps[after] == "**":
            after += 1
            found.add(after)
    return found
