"""Teams that can own an incident, and the rules that say where an incident is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.model.conversation import Platform
from core.model.on_call import Rota

NOBODY = "nobody"  # whose an incident is that no team owns; a note on its end may say so
NO_TEAM = frozenset({NOBODY, "no one", "no team", "none", "not ours", "n/a"})  # how people say so in a note
TAG = "tag:"  # before the id of a tag in Teams, which calls everybody who has it


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
