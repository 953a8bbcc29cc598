"""Teams that can own an incident, and the rules that say where an incident is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.conversation import Platform


@dataclass(frozen=True, slots=True)
class Team:
    """`document` is the team's function document (Markdown): what it owns, what not, and its words.

    `channel` is the name of the channel that the team is reached in; `on_call` the people to call, first one first.
    `mentions` maps a platform to the id that pings it there: a user group in Slack, a person in Teams.
    `aliases` are ids that it had before, or those of teams that were merged into it: their past incidents are its own.
    """

    id: str
    name: str
    document: str = ""
    services: frozenset[str] = frozenset()
    channel: str = ""
    on_call: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    mentions: Mapping[Platform, str] = field(default_factory=dict[Platform, str])


def team_named(text: str, teams: Sequence[Team]) -> Team | None:
    """The team that somebody means: by its id, name or alias, in any case, with or without the word “team”."""
    said = text.strip(" \t\r\n.,@#").casefold().removeprefix("team ").removesuffix(" team").strip()
    return next(
        (team for team in teams if said in {name.casefold() for name in (team.id, team.name, *team.aliases)}), None
    )


@dataclass(frozen=True, slots=True)
class Route:
    """Where an incident is posted of which all of `match` is true. The first route that matches is taken.

    It is posted to the first of `channels` that is there, and to all of `also` on every platform at once.

    `match` names labels, `source`, `service`, `severity` or `team`, each with the values of which one must be true.
    """

    channels: tuple[str, ...]
    match: tuple[tuple[str, frozenset[str]], ...] = ()
    also: tuple[str, ...] = ()

    def matches(self, facts: Mapping[str, frozenset[str]]) -> bool:
        """Whether it is for an incident of which `facts` are true (see `core.routing.routing_facts`)."""
        return all(not accepted.isdisjoint(facts.get(name, frozenset())) for name, accepted in self.match)
