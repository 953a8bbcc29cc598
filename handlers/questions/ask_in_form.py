"""Build the form that a button opens: a correction, a reassignment, a cause, a draft to be filed or an incident's details."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.audience import may_see_incident
from core.model.conversation import Audience, Channel, Person
from core.model.incident import Incident
from core.model.messages import (
    FILING_ACTIONS,
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    Form,
    HandoverRequest,
    IncidentDetails,
)
from core.model.prediction import Prediction, PredictionKind
from core.model.team import Team, current_team
from core.ports import Store
from handlers.incidents.file_incident import FilingDesk

# The kind of claim that each button disputes.
DISPUTED = {
    ButtonAction.WRONG: PredictionKind.ANSWER,
    ButtonAction.OWNER_WRONG: PredictionKind.OWNER,
    ButtonAction.CAUSE_WRONG: PredictionKind.CAUSE,
}


class AskInForm:
    """Implements `core.ports.Forms`."""

    def __init__(
        self, store: Store, teams: Sequence[Team], channels: Sequence[Channel], desk: FilingDesk | None = None
    ) -> None:
        self._store = store
        self._teams = teams
        self._channels = channels
        self._desk = desk

    async def form(self, verdict: ButtonAction, subject: str, audience: Audience, person: Person) -> Form | None:
        """Return the form; None if its prediction or incident is not stored, or the audience may not see it."""
        if verdict is ButtonAction.HAND_OVER:
            return await self._handover(subject, audience)
        if verdict is ButtonAction.DETAILS:
            incident = await self._visible(subject, audience)
            return IncidentDetails(incident) if incident is not None else None
        if verdict in FILING_ACTIONS:
            seen = await self._visible(subject, audience)
            draft = await self._desk.draft(verdict, subject, audience, person) if seen and self._desk else ""
            return draft if isinstance(draft, FilingRequest) else None
        prediction = await self._prediction(subject) if verdict in DISPUTED else None
        if prediction is None or prediction.kind is not DISPUTED[verdict]:
            return None
        match prediction.kind:
            case PredictionKind.ANSWER:
                return CorrectionRequest(prediction.id)
            case PredictionKind.OWNER:
                return await self._handover(prediction.subject, audience)
            case _:
                return CauseRequest(prediction.id)

    async def _handover(self, incident_id: str, audience: Audience) -> HandoverRequest | None:
        incident = await self._visible(incident_id, audience)
        return handover_request(incident, self._teams) if incident is not None else None

    async def _visible(self, incident_id: str, audience: Audience) -> Incident | None:
        async with self._store.transaction() as transaction:
            incident = await transaction.incidents.get(incident_id)
        seen = incident is not None and may_see_incident(audience, incident, self._channels)
        return incident if seen else None

    async def _prediction(self, prediction_id: str) -> Prediction | None:
        async with self._store.transaction() as transaction:
            return await transaction.predictions.get(prediction_id)


def handover_request(incident: Incident, teams: Sequence[Team]) -> HandoverRequest:
    """Return the reassignment form with every team except the current owner."""
    owner = incident.owner.owner if incident.owner is not None else None
    standing = current_team(owner.team_id, teams) if owner is not None else None
    others = sorted((team for team in teams if team != standing), key=lambda team: team.name)
    name = owner.team_name if owner else ""
    claim = incident.owner.prediction_id if incident.owner is not None else ""
    return HandoverRequest(incident.id, name, tuple((team.id, team.name) for team in others), claim)
