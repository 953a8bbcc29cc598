"""The past incidents: those that the sources hold, and those that ended here with a note on why."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.audience import incident_audience
from core.closed_incident import closed_incident
from core.conversation import Audience, Channel
from core.incident import PastIncident
from core.ports import Store
from core.team import Team
from core.triage.history import IncidentHistory

MAX_NOTED = 5_000  # latest incidents with a note that are learned from


class GrowingHistory:
    """The history as of the last `grow`; whoever searches it meanwhile goes on in the one before."""

    def __init__(self, incidents: Sequence[PastIncident], channels: Sequence[Channel], teams: Sequence[Team]) -> None:
        self._incidents = tuple(incidents)
        self._channels = channels
        self._teams = teams
        self._whole = IncidentHistory(self._incidents)

    @property
    def incidents(self) -> tuple[PastIncident, ...]:
        """All of them, whoever may read them: to learn from, never to show."""
        return self._whole.incidents

    def readable_by(self, audience: Audience) -> IncidentHistory:
        """See `IncidentHistory.readable_by`."""
        return self._whole.readable_by(audience)

    async def grow(self, store: Store) -> None:
        """Take in what was noted. An incident is read by those who may read what is said in its channel."""
        async with store.transaction() as transaction:
            noted = await transaction.incidents.noted(MAX_NOTED)
        closed = [
            closed_incident(each, self._teams, incident_audience(each, self._channels).disclosed_to) for each in noted
        ]
        known = {incident.id for incident in self._incidents}
        new = [incident for incident in closed if incident is not None and incident.id not in known]
        whole = (*self._incidents, *new)
        if whole != self._whole.incidents:
            self._whole = await asyncio.to_thread(IncidentHistory, whole)
