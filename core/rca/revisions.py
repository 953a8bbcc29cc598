"""Join change records into revisions: a commit with the deployments that shipped it, or any other change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from core.model.catalogue import CodeOwners
from core.model.team import Team
from core.ports import Change

MIN_HASH = 7  # characters of a hash that identify a commit
_COMMIT = re.compile(r"commit|merge|pull.?request|^code$", re.IGNORECASE)
_SHIPPING = re.compile(r"deploy|release|roll.?out|roll.?back|promot", re.IGNORECASE)
"""Kinds of changes that wait for a deployment, and that are deployments."""

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
    services' commits since the previous deployment. A deployment without commits is a revision itself.
    """
    names = frozenset(services) | {name for change in changes for name in change.touched}
    ordered = sorted(changes, key=lambda change: change.at)
    commits = {change.id: change for change in ordered if is_commit(change)}
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
        deploys = tuple(shipped.get(change.id, ())) if is_commit(change) else ()
        touched = touched_services(change, names)
        live = dict.fromkeys(touched, change.at)
        if deploys:
            live = dict[str, datetime]()
            for deploy in deploys:
                at = max(deploy.at, change.at)  # a deployment cannot ship what was not yet written
                for name in touched_services(deploy, names) or touched:
                    live[name] = min(at, live.get(name, at))
        at = max(change.at, min((deploy.at for deploy in deploys), default=change.at))
        waits = is_commit(change) and not deploys and bool(knows_commits & set(touched))
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
    if is_commit(deploy) or not _SHIPPING.search(deploy.kind):
        return []
    words = (word for word in _WORD.findall(f"{deploy.title}\n{deploy.detail}") if any(map(str.isdigit, word)))
    listed = [commit for named in (*deploy.commits, *words) if (commit := _commit(named, commits))]
    head = _commit(deploy.revision, commits) or _commit(deploy.id, commits)
    if listed:
        return list(dict.fromkeys([*listed, *([head] if head else [])]))
    services = set(deploy.touched)
    earlier = [
        commits[before].at if (before := _commit(change.revision, commits)) else change.at
        for change in ordered
        if change.at < deploy.at
        and not is_commit(change)
        and _SHIPPING.search(change.kind)
        and services & set(change.touched)
    ]
    since, until = max(earlier, default=None), commits[head].at if head else deploy.at
    between = [
        commit.id
        for commit in commits.values()
        if (since is None or since < commit.at)
        and commit.at <= until
        and services & set(touched_services(commit, names))
    ]
    return list(dict.fromkeys([*between, *([head] if head else [])]))


def is_commit(change: Change) -> bool:
    """Return whether a change takes effect only once it is deployed."""
    return _COMMIT.search(change.kind) is not None and not _SHIPPING.search(change.kind)


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
