"""Teams that can own an incident, their on-call rotas, and the routes of incidents to channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.model.conversation import Platform
from core.model.naming import name_key

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
