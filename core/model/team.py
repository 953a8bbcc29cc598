"""Teams that can own an incident and who is on call for them, and the rules that say where an incident is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.model.conversation import Platform

NOBODY = "nobody"  # whose an incident is that no team owns; a note on its end may say so
NO_TEAM = frozenset({NOBODY, "no one", "no team", "none", "not ours", "n/a"})  # how people say so in a note
TAG = "tag:"  # before the id of a tag in Teams, which calls everybody who has it


@dataclass(frozen=True, slots=True)
class Rota:
    """Turns of equal `length` (above 0), which at least one of `people` takes after the other, over and over.

    The first turn begins at `start`, by whose time zone's clocks all others begin too, also where these are changed.
    """

    people: tuple[str, ...]
    start: datetime
    length: timedelta

    def on_duty(self, at: datetime) -> tuple[str, ...]:
        """Whose turn it is; nobody's before the rota begins."""
        if at < self.start:
            return ()
        local = at.astimezone(self.start.tzinfo)  # a difference within one zone is that of its clocks
        return (self.people[(local - self.start) // self.length % len(self.people)],)

    def next_turn(self, at: datetime) -> datetime:
        """Return when the next turn begins: after `at`, or with the rota."""
        if at < self.start:
            return self.start
        local = at.astimezone(self.start.tzinfo)
        return self.start + ((local - self.start) // self.length + 1) * self.length


@dataclass(frozen=True, slots=True)
class Team:
    """`document` is the team's function document (Markdown): what it owns, what not, and its words.

    `channel` is the name of the channel that the team is reached in; `on_call` the people to call, first one first.
    With a `rota` these take turns. `members` are others who are known to belong to it.
    `mentions` maps a platform to the id that pings it there: a user group in Slack, in Teams a person, or a tag after
    `TAG`. `aliases` are ids that it had before, or those of teams that were merged into it: their past incidents are
    its own.
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
        """Everybody who is known to belong to it."""
        return self.members.union(self.on_call)


class TeamRotas:
    """An OnCall of the teams themselves: their rotas, and of the others the people to call, whenever it is."""

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
    """The team that somebody means: by its id, name or alias, in any case, with or without the word “team”.

    Whoever has a name today is meant by it, and not whoever had it before.
    """
    said = text.strip(" \t\r\n.,@#").casefold().removeprefix("team ").removesuffix(" team").strip()
    by_id = next((team for team in teams if said == team.id.casefold()), None)
    by_name = next((team for team in teams if said == team.name.casefold()), None)
    by_alias = next((team for team in teams if said in map(str.casefold, team.aliases)), None)
    return by_id or by_name or by_alias


def current_team(team_id: str, teams: Sequence[Team]) -> Team | None:
    """The team that has this id today, or that took over the one that had it."""
    by_id = next((team for team in teams if team.id == team_id), None)
    return by_id or next((team for team in teams if team_id in team.aliases), None)


def current_ids(teams: Sequence[Team]) -> dict[str, str]:
    """Every id that a team has or had → that of the team of today, as `current_team` finds it."""
    former = {alias: team.id for team in reversed(teams) for alias in team.aliases}
    return former | {team.id: team.id for team in teams}


def means_nobody(text: str) -> bool:
    """Return whether somebody means that an incident was no team's."""
    return text.strip(" \t\r\n.,@#").casefold() in NO_TEAM


@dataclass(frozen=True, slots=True)
class Route:
    """A route for incidents of which all of `match` is true. The first route that matches is taken.

    It is posted to the first of `channels` that is there, and to all of `also` on every platform at once.

    `match` names labels, `source`, `service`, `severity` or `team`, each with the values of which one must be true.
    """

    channels: tuple[str, ...]
    match: tuple[tuple[str, frozenset[str]], ...] = ()
    also: tuple[str, ...] = ()

    def matches(self, facts: Mapping[str, frozenset[str]]) -> bool:
        """Return whether it is for an incident of which `facts` are true (see `core.model.routing.routing_facts`)."""
        return all(not accepted.isdisjoint(facts.get(name, frozenset())) for name, accepted in self.match)
