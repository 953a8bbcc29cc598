"""The port of on-call schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class OnCall(Protocol):
    """The people on call, team by team."""

    @property
    def name(self) -> str:
        """The name by which people know the system that holds the schedules."""
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
