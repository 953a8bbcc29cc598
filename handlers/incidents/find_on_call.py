"""The people of a team who are on call now; unknown where the schedule cannot tell in time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import structlog

from core.model.errors import ToolUnavailable
from core.model.team import Team, TeamRotas
from core.ports import OnCall

DEADLINE = 3.0  # seconds that a schedule may take

log = structlog.get_logger()


async def find_on_call(team: Team, schedules: Sequence[OnCall], at: datetime) -> tuple[tuple[str, ...], str]:
    """Those on call, and the name of the system that could not say who; empty if it could.

    The first of `schedules` that has the team is asked, and plumbline.yaml where none has it.
    """
    schedule = next((each for each in schedules if team.id in each.teams), TeamRotas((team,)))
    try:
        async with asyncio.timeout(DEADLINE):
            return await schedule.people(team.id, at), ""
    except (ToolUnavailable, TimeoutError) as error:
        log.warning("on-call schedule not read", team=team.id, reason=str(error) or "too slow")
        return (), schedule.name
