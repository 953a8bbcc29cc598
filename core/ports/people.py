"""The port of on-call schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class OnCall(Protocol):
    """On-call schedules of teams."""

    @property
    def name(self) -> str:
        """Return the name of the system that holds the schedules."""
        ...

    @property
    def teams(self) -> frozenset[str]:
        """Return the ids of the teams that have a schedule."""
        ...

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        """Return the people on call for a team at a time (with a zone), in calling order. Untrusted.

        Empty for a team that is not in `teams`, or if nobody is on call. Raises ToolUnavailable if the schedule cannot
        be read.
        """
        ...
