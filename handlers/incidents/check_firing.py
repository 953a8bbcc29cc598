"""Check whether an alert still fires before a long analysis starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.model.errors import ToolUnavailable
from core.model.incident import Incident, IncidentState
from core.ports import AlertMonitor

DEADLINE = 8.0  # seconds that one monitoring system may take

RESOLVED = "It was resolved before I finished investigating. This is what was known at that time."
GONE = (
    "{monitor} reports that the alert no longer fires, so I stopped investigating. This is what was known at that time."
)


async def reason_to_stop(incident: Incident, monitors: Sequence[AlertMonitor]) -> str:
    """Return why the incident needs no long analysis; empty if it still needs one.

    If any monitoring system reports that the alert fires, it fires. If none can tell, the state from the last delivery
    counts.
    """
    if incident.state is IncidentState.RESOLVED:
        return RESOLVED
    said = await asyncio.gather(*(_ask(monitor, incident) for monitor in monitors))
    silent = next((monitor.name for monitor, fires in zip(monitors, said, strict=True) if fires is False), "")
    return GONE.format(monitor=silent) if silent and True not in said else ""


async def _ask(monitor: AlertMonitor, incident: Incident) -> bool | None:
    try:
        async with asyncio.timeout(DEADLINE):
            return await monitor.firing(incident)
    except (ToolUnavailable, TimeoutError):
        return None
