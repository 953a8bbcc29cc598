"""Look-up of the people on call for a team."""

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
    """Return the people on call, and the name of the schedule that failed to answer (empty if it answered).

    The first of `schedules` that covers the team is asked; otherwise the rota in plumbline.yaml.
    """
    schedule = next((each for each in schedules if team.id in each.teams), TeamRotas((team,)))
    try:
        async with asyncio.timeout(DEADLINE):
            return await schedule.people(team.id, at), ""
    except (ToolUnavailable, TimeoutError) as error:
        log.warning("on-call schedule not read", team=team.id, reason=str(error) or "too slow")
        return (), schedule.name
