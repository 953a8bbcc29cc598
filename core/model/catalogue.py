"""Teams and dependencies from catalogues, and their merge with plumbline.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.model.code_owners import CodeOwners
from core.model.team import Team, team_named

Dependencies = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The teams, service dependencies (caller → callees) and code owners of a catalogue."""

    teams: tuple[Team, ...] = ()
    dependencies: Dependencies = field(default_factory=dict[str, tuple[str, ...]])
    code: tuple[CodeOwners, ...] = ()


def merged_teams(written: Sequence[Team], found: Iterable[Team]) -> tuple[Team, ...]:
    """Merge teams: written ones, completed from the found ones, then those that are only found.

    A found team is the same as a written one if its id or name matches the id, name or alias of that one. A service
    that plumbline.yaml assigns to a team belongs to no other team.
    """
    teams = {team.id: team for team in written}
    claimed = {service for team in written for service in team.services}
    for each in found:
        other = replace(each, services=each.services - claimed)
        known = teams.get(each.id) or team_named(each.id, written) or team_named(each.name, written)
        teams[known.id if known else each.id] = _completed(teams[known.id], other) if known else other
    return tuple(teams.values())


def merged_dependencies(written: Dependencies, found: Iterable[Dependencies]) -> dict[str, tuple[str, ...]]:
    """Merge dependencies. Those in plumbline.yaml replace the service's dependencies from catalogues."""
    calls: dict[str, tuple[str, ...]] = {}
    for each in found:
        for service, callees in each.items():
            calls[service] = tuple(dict.fromkeys((*calls.get(service, ()), *callees)))
    return calls | dict(written)


def named_code(code: CodeOwners, teams: Sequence[Team], given: Mapping[str, str]) -> CodeOwners:
    """Return the rules with team ids as owners.

    `given` maps owners to teams; otherwise the last part of the owner is matched with the teams' names. Owners that are
    no team are dropped.
    """

    def team_of(owner: str) -> str:
        named = given.get(owner) or owner.lstrip("@").rpartition("/")[2]
        team = team_named(named, teams)
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
