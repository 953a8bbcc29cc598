"""The teams' managers: they consult their own monitoring, and a language model may play them in a negotiation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from core.knowledge.terms import terms
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.incident import Incident
from core.model.language_model import ModelRequest, Urgency
from core.model.team import Team
from core.ports import LanguageModel
from core.rca.observation_tools import observation_tools
from core.rca.observations import Observations
from core.rca.scene import Scene, survey
from core.triage.managers import TriageEvidence
from core.triage.model_managers import TeamDocuments
from core.triage.model_negotiation import Negotiation, negotiate_with_model
from core.triage.monitoring import TeamFinding, finding_of
from core.triage.negotiate import Verdict

DEADLINE = 120.0  # seconds that one reply may take

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Negotiator:
    """Inputs of the team managers: a model, the team documents and the findings of monitoring."""

    model: LanguageModel
    documents: TeamDocuments
    observe: Observe


async def negotiate_owner(
    incident: Incident,
    text: str,
    evidence: TriageEvidence,
    verdict: Verdict,
    negotiator: Negotiator,
    removed: frozenset[str],
) -> Negotiation | None:
    """Let the managers of all teams except `removed` negotiate, and return the result.

    Returns None if the model failed; the evidence engine's verdict then applies.
    """
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE)
    monitoring = TeamMonitoring(incident, negotiator.observe)
    try:
        return await negotiate_with_model(
            negotiator.model,
            request,
            text,
            evidence,
            verdict,
            negotiator.documents,
            monitoring.describe,
            removed,
        )
    except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
        log.warning("triage without the language model", incident=incident.id, reason=str(error))
        return None


MAX_SERVICES = 4  # of a team, described to a language model
READ = ("read_logs", "read_metrics", "list_changes")  # tools whose output a manager reads

Observe = Callable[[Incident], Awaitable[Observations]]
"""Reads the monitoring systems around an incident; unreadable systems are recorded as gaps."""


class TeamMonitoring:
    """Read-only monitoring around one incident.

    If the incident names no service, the team's service with the most similar name is used.
    """

    def __init__(self, incident: Incident, observe: Observe) -> None:
        self._incident = incident
        self._observe = observe
        self._observed: dict[str, asyncio.Future[tuple[Observations, Scene]]] = {}

    async def describe(self, team: Team) -> str:
        """Return the monitoring data of a team as text for a language model; empty if there is none."""
        found, scene = await self._seen_by(team)
        own = [service for service in found.services if service in team.services][:MAX_SERVICES]
        tools = [tool for tool in observation_tools(found, scene) if tool.name in READ]
        return "\n".join([await tool.call({"service": service}) for service in own for tool in tools])

    async def finding(self, team: Team) -> TeamFinding:
        """Return the monitoring data of a team as numbers and quotes.

        Raises ToolUnavailable if none of its tools can be read.
        """
        if not team.services:
            return TeamFinding()
        found, scene = await self._seen_by(team)
        failed = [gap.text for gap in found.gaps if gap.reason.is_failure]
        if failed and not (found.logs or found.series or found.changes):
            self._observed.clear()  # read again at the next request
            raise ToolUnavailable("; ".join(failed))
        return finding_of(team, self._incident, found, scene)

    async def _seen_by(self, team: Team) -> tuple[Observations, Scene]:
        found, scene = await self._seen_from(self._incident.service)
        if team.services and not team.services.intersection(found.services):
            found, scene = await self._seen_from(_nearest(team, self._incident))
        return found, scene

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
