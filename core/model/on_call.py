"""On-call rotas that plumbline.yaml holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.model.team import Team


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
