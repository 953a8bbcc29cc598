"""Who is on call."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class OnCall(Protocol):
    """Who is on call, team by team."""

    @property
    def name(self) -> str:
        """What people call the system that holds the schedules."""
        ...

    @property
    def teams(self) -> frozenset[str]:
        """The ids of the teams whose schedules it has."""
        ...

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        """Those on call for a team at a time (with a zone), the one to call first before the others. Untrusted.

        Nobody for a team that is not in `teams`, or while nobody is on call. Raises ToolUnavailable when the schedule
        cannot be read.
        """
        ...
