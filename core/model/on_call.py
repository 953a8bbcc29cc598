"""On-call rotas from plumbline.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.model.team import Team


@dataclass(frozen=True, slots=True)
class Rota:
    """A rota of turns with equal `length` (above 0) among `people` (at least one), repeated.

    The first turn begins at `start`; all others begin at the same local time, also across daylight-saving changes.
    """

    people: tuple[str, ...]
    start: datetime
    length: timedelta

    def on_duty(self, at: datetime) -> tuple[str, ...]:
        """Return the person on duty; nobody before the rota begins."""
        if at < self.start:
            return ()
        local = at.astimezone(self.start.tzinfo)  # a difference within one zone is in local time
        return (self.people[(local - self.start) // self.length % len(self.people)],)

    def next_turn(self, at: datetime) -> datetime:
        """Return when the next turn begins: after `at`, or at the start of the rota."""
        if at < self.start:
            return self.start
        local = at.astimezone(self.start.tzinfo)
        return self.start + ((local - self.start) // self.length + 1) * self.length


class TeamRotas:
    """An OnCall over the teams of plumbline.yaml: their rotas, or else a fixed list of people."""

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
