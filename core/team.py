"""Teams that can own an incident, and the rules that say where an incident is posted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Team:
    """`document` is the team's function document (Markdown): what it owns, what not, and its words.

    `channel` is the name of the channel that the team is reached in; `on_call` the people to call, first one first.
    `aliases` are ids that it had before, or those of teams that were merged into it: their past incidents are its own.
    """

    id: str
    name: str
    document: str = ""
    services: frozenset[str] = frozenset()
    channel: str = ""
    on_call: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """An incident whose labels hold all of `match` is posted to `channels`. The first route that matches is taken."""

    channels: tuple[str, ...]
    match: tuple[tuple[str, str], ...] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.match)
