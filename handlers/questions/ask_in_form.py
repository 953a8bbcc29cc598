"""The form that a button opens, and a message as it would be shown now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from core.incidents.readable import visible
from core.model.badge import NO_POLICY, Policy
from core.model.conversation import Audience, Channel, MessageReference, Person, Platform
from core.model.filing import FilingTarget
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
    Message,
    ProposalMessage,
)
from core.model.prediction import Prediction, PredictionKind
from core.ports import AudienceAt, OpenToAll, Store
from handlers.common.ports import Chats, Ports
from handlers.incidents.file_incident import draft_of
from handlers.incidents.present_incident import Link, message_now
from handlers.incidents.reassign_incident import handover_request
from handlers.incidents.update_stakeholders import draft_of_update

# The kind of claim that each button disputes.
DISPUTED = {
    ButtonAction.WRONG: PredictionKind.ANSWER,
    ButtonAction.OWNER_WRONG: PredictionKind.OWNER,
    ButtonAction.CAUSE_WRONG: PredictionKind.CAUSE,
}


NO_LOOK_UPS: Mapping[Platform, OpenToAll] = MappingProxyType({})


class AskInForm:
    """Implements `core.ports.Forms`."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def form(self, verdict: ButtonAction, subject: str, audience: Audience, person: Person) -> Form | None:
        """Return the form; None if its prediction or incident is not stored, or the audience may not see it."""
        if verdict is ButtonAction.HAND_OVER:
            return await self._handover(subject, audience)
        if verdict is ButtonAction.DETAILS:
            incident = await self._visible(subject, audience)
            return IncidentDetails(incident) if incident is not None else None
        if verdict in FILING_ACTIONS:
            if await self._visible(subject, audience) is None:
                return None
            draft = (
                await draft_of_update(subject, audience, person, self._ports)
                if verdict is ButtonAction.WRITE_UPDATE
                else await draft_of(verdict, subject, audience, person, self._ports)
            )
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
        return handover_request(incident, self._ports.company.teams) if incident is not None else None

    async def _visible(self, incident_id: str, audience: Audience) -> Incident | None:
        async with self._ports.store.transaction() as transaction:
            incident = await transaction.incidents.get(incident_id)
        stored = [incident] if incident is not None else []
        return next(iter(visible(stored, audience, await self._ports.chats.channels_of(stored))), None)

    async def _prediction(self, prediction_id: str) -> Prediction | None:
        async with self._ports.store.transaction() as transaction:
            return await transaction.predictions.get(prediction_id)


async def no_link(_reference: MessageReference) -> str:
    """Return an empty address."""
    return ""


class ShownAgain:
    """Implements `core.ports.CardRefresher` for messages that change: incidents and proposed answers."""

    def __init__(
        self,
        store: Store,
        policy: Policy = NO_POLICY,
        channels: Sequence[Channel] = (),
        link: Link = no_link,
        targets: Sequence[FilingTarget] = (),
        audience_at: AudienceAt | None = None,
        openness: Mapping[Platform, OpenToAll] = NO_LOOK_UPS,
    ) -> None:
        """Create the renderer. `link` returns the address of a message, for people who may read it.

        `audience_at` and `openness` look up the audience of a place on its platform and the channels of an incident; see
        `Chats`.
        """
        self._store = store
        self._policy = policy
        self._channels = channels
        self._link = link
        self._targets = targets
        self._audience_at = audience_at
        self._openness = openness

    async def message(self, reference: MessageReference) -> Message | None:
        async with self._store.transaction() as transaction:
            post = await transaction.posts.at(reference)
            kind, _, subject = post.intent.partition(":") if post is not None else ("", "", "")
            answer = await transaction.curated.get(subject) if kind == "proposal" else None
        if kind == "incident":
            incident_id = subject.partition("@")[0]  # a suffix names the place of a copy
            audiences = {reference.place.platform: self._audience_at} if self._audience_at is not None else {}
            return await message_now(
                incident_id,
                reference.place,
                policy=self._policy,
                chats=Chats(channels=self._channels, audiences=audiences, openness=self._openness),
                store=self._store,
                link=self._link,
                targets=self._targets,
            )
        return ProposalMessage(answer) if answer is not None else None
