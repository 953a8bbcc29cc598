"""The teams of a catalogue, and how they are merged with those of plumbline.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.model.code_owners import CodeOwners
from core.model.team import Team, team_named

Dependencies = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Teams, which service calls which, and whose code is whose (the owners as the file names them)."""

    teams: tuple[Team, ...] = ()
    dependencies: Dependencies = field(default_factory=dict[str, tuple[str, ...]])
    code: tuple[CodeOwners, ...] = ()


def merged_teams(written: Sequence[Team], found: Iterable[Team]) -> tuple[Team, ...]:
    """The written teams with what they leave open taken from the found ones, and then those that are only found.

    A team that is found by the id, name or former id of a written one is that team. A service that is written to belong
    to one team belongs to no other.
    """
    teams = {team.id: team for team in written}
    claimed = {service for team in written for service in team.services}
    for each in found:
        other = replace(each, services=each.services - claimed)
        known = teams.get(each.id) or team_named(each.id, written) or team_named(each.name, written)
        teams[known.id if known else each.id] = _completed(teams[known.id], other) if known else other
    return tuple(teams.values())


def merged_dependencies(written: Dependencies, found: Iterable[Dependencies]) -> dict[str, tuple[str, ...]]:
    """Merge the dependencies: of a service in plumbline.yaml those written there, of the others all that
    any catalogue names.
    """
    calls: dict[str, tuple[str, ...]] = {}
    for each in found:
        for service, callees in each.items():
            calls[service] = tuple(dict.fromkeys((*calls.get(service, ()), *callees)))
    return calls | dict(written)


def named_code(code: CodeOwners, teams: Sequence[Team], given: Mapping[str, str]) -> CodeOwners:
    """The rules with the ids of teams: those that `given` says, else the team that is called like the owner's last part.

    Owners that are no team (people, teams of others) are left out.
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
