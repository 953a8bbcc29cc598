"""The team managers are played by a language model, and look at their own monitoring before they vote."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from core.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.incident import Incident
from core.knowledge.terms import terms
from core.language_model import ModelRequest, Urgency
from core.ports import LanguageModel
from core.rca.observation_tools import observation_tools
from core.rca.observations import Observations
from core.rca.scene import Scene, survey
from core.team import Team
from core.triage.managers import TriageEvidence
from core.triage.model_documents import TeamDocuments
from core.triage.model_negotiation import Negotiation, negotiate_with_model
from core.triage.negotiate import Verdict

DEADLINE = 120.0  # seconds that one reply may take
MAX_SERVICES = 4  # of a team, whose monitoring is read
READ = ("read_logs", "read_metrics", "list_changes")  # of the tools, what a manager reads of its services

Observe = Callable[[Incident], Awaitable[Observations]]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Negotiator:
    """What the managers need: a model, the team documents as it can read them, and what monitoring shows."""

    model: LanguageModel
    documents: TeamDocuments
    observe: Observe


async def negotiate_owner(
    incident: Incident, text: str, evidence: TriageEvidence, verdict: Verdict, negotiator: Negotiator
) -> Negotiation | None:
    """What the managers came to; None where the model failed: then the evidence engine's verdict stands."""
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE)
    monitoring = _Monitoring(incident, negotiator.observe)
    try:
        return await negotiate_with_model(
            negotiator.model,
            request,
            text,
            evidence,
            verdict,
            negotiator.documents,
            monitoring.of,
            incident.turned_away,
        )
    except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
        log.warning("triage without the language model", incident=incident.id, reason=str(error))
        return None


class _Monitoring:
    """Read-only: each team sees its own services. What is around the incident is read once for all of them."""

    def __init__(self, incident: Incident, observe: Observe) -> None:
        self._incident = incident
        self._observe = observe
        self._observed: dict[str, Awaitable[tuple[Observations, Scene]]] = {}

    async def of(self, team: Team) -> str:
        """Where the incident names no service, the team's own that its words come closest to is looked at."""
        found, scene = await self._seen_from(self._incident.service)
        if not found.services and team.services:
            found, scene = await self._seen_from(_nearest(team, self._incident))
        own = [service for service in found.services if service in team.services][:MAX_SERVICES]
        tools = [tool for tool in observation_tools(found, scene) if tool.name in READ]
        told = [await tool.call({"service": service}) for service in own for tool in tools]
        return "\n".join(told)

    async def _seen_from(self, service: str) -> tuple[Observations, Scene]:
        if service not in self._observed:
            self._observed[service] = asyncio.ensure_future(self._look(service))
        return await self._observed[service]

    async def _look(self, service: str) -> tuple[Observations, Scene]:
        found = await self._observe(replace(self._incident, service=service))
        return found, await asyncio.to_thread(survey, found)


def _nearest(team: Team, incident: Incident) -> str:
    said = set(terms(incident.description))
    return min(team.services, key=lambda service: (-len(said & set(terms(service))), service))
