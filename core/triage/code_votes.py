"""Votes of failing files and changed files for the teams that own their code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.model.catalogue import CodeOwners
from core.rca.stack_traces import frames

MAX_PATHS = 30  # of one incident that vote

_ADDRESS = re.compile(r"\b\w{2,10}://\S{1,2000}")
_PATH = re.compile(r"(?<![\w/.@-])/?(?:[\w@.+-]{1,80}/){1,20}[\w@+-][\w@.+-]{0,78}\.[A-Za-z]\w{0,7}(?![\w/])")


@dataclass(frozen=True, slots=True)
class CodeVote:
    """A team's `share` of the votes of files, in (0, 1], and one of its files with the rule that says so."""

    share: float
    path: str
    rule: str


def paths_in(text: str) -> tuple[str, ...]:
    """Return the files that a text names, those of its stack traces first. An address on the web is none."""
    without_addresses = _ADDRESS.sub(" ", text)
    traced = (frame.path for frame in frames(text) if "/" in frame.path)
    named = (match[0] for match in _PATH.finditer(without_addresses))
    return tuple(dict.fromkeys([*traced, *named]))[:MAX_PATHS]


def code_votes(paths: Sequence[str], services: frozenset[str], code: Sequence[CodeOwners]) -> Mapping[str, CodeVote]:
    """Return team id → vote. Each file has one, which its owners share; files that nobody owns have none.

    Only rules of repositories count that hold the code of one of `services`, or do not say of which.
    """
    asked = [each for each in code if not each.services or not services or each.services & services]
    votes: defaultdict[str, float] = defaultdict(float)
    shown: dict[str, tuple[str, str]] = {}
    for path in paths:
        found = {owner: rule.pattern for each in asked for rule in each.rules_for_traced(path) for owner in rule.owners}
        for owner, pattern in found.items():
            votes[owner] += 1 / len(found)
            shown.setdefault(owner, (path, pattern))
    total = sum(votes.values())
    return {team: CodeVote(vote / total, *shown[team]) for team, vote in votes.items()}
