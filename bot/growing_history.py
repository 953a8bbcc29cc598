"""The past incidents: those that the sources hold, and those that ended here with a note on why or a known owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from core.audience import incident_audience
from core.closed_incident import OwnerLabels, closed_incident
from core.conversation import Audience, Channel
from core.incident import Incident, PastIncident
from core.ports import Store, Transaction
from core.team import Team
from core.triage.history import IncidentHistory

MAX_ENDED = 5_000  # latest incidents that ended and are learned from


class GrowingHistory:
    """The history as of the last `grow`; whoever searches it meanwhile goes on in the one before."""

    def __init__(self, incidents: Sequence[PastIncident], channels: Sequence[Channel], teams: Sequence[Team]) -> None:
        self._incidents = tuple(incidents)
        self._channels = channels
        self._teams = teams
        self._whole = IncidentHistory(self._incidents)

    @property
    def whole(self) -> IncidentHistory:
        """All of it, whoever may read it: to learn from, never to show."""
        return self._whole

    @property
    def incidents(self) -> tuple[PastIncident, ...]:
        """All of them, whoever may read them: to learn from, never to show."""
        return self._whole.incidents

    def readable_by(self, audience: Audience) -> IncidentHistory:
        """See `IncidentHistory.readable_by`."""
        return self._whole.readable_by(audience)

    async def grow(self, store: Store) -> None:
        """Take in what ended. An incident is read by those who may read what is said in its channel."""
        async with store.transaction() as transaction:
            ended = [
                (each, await _owner_labels(each, transaction)) for each in await transaction.incidents.ended(MAX_ENDED)
            ]
        closed = [
            closed_incident(each, self._teams, incident_audience(each, self._channels).disclosed_to, labels)
            for each, labels in ended
        ]
        known = {incident.id for incident in self._incidents}
        new = [incident for incident in closed if incident is not None and incident.id not in known]
        whole = (*self._incidents, *new)
        if whole != self._whole.incidents:
            self._whole = await asyncio.to_thread(IncidentHistory, whole)


async def _owner_labels(incident: Incident, transaction: Transaction) -> OwnerLabels:
    """What people said of the owner that was proposed last; a note says more."""
    proposal = incident.owner
    if incident.resolution is not None or proposal is None or proposal.owner is None:
        return OwnerLabels()
    said = await transaction.predictions.labels_of(proposal.prediction_id)
    owner = proposal.owner.team_id
    right = any(label.correct for label in said)
    return OwnerLabels(owner if right else "", frozenset({owner} if not all(label.correct for label in said) else ()))
