"""The monitoring data that a team's manager votes by (Triangle, section 3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.knowledge.terms import terms
from core.model.errors import ToolUnavailable
from core.model.incident import Incident
from core.model.team import Team
from core.rca.incident_signals import IncidentSignals, survey
from core.rca.observation_tools import observation_tools
from core.rca.observations import Observations
from core.triage.monitoring import TeamFinding, finding_of

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
        self._observed: dict[str, asyncio.Future[tuple[Observations, IncidentSignals]]] = {}

    async def finding(self, team: Team) -> TeamFinding:
        """Return the monitoring data of a team as numbers and quotes.

        Raises ToolUnavailable if none of its tools can be read.
        """
        if not team.services:
            return TeamFinding()
        observations, incident_signals = await self._seen_by(team)
        failed = [gap.text for gap in observations.gaps if gap.reason.is_failure]
        if failed and not (observations.logs or observations.series or observations.changes):
            self._observed.clear()  # read again at the next request
            raise ToolUnavailable("; ".join(failed))
        return finding_of(team, self._incident, observations, incident_signals)

    async def describe(self, team: Team, service: str) -> str:
        """Return the monitoring data of a team as text for a language model, seen from `service` unless it is empty.

        Empty if the team has none. Systems that could not be read are named.
        """
        if not team.services:
            return ""
        observations, incident_signals = await (self._seen_from(service) if service else self._seen_by(team))
        own = [each for each in observations.services if each in team.services][:MAX_SERVICES]
        tools = [tool for tool in observation_tools(observations, incident_signals) if tool.name in READ]
        parts = [f"{each}, {tool.name}:\n{await tool.call({'service': each})}" for each in own for tool in tools]
        return "\n".join([*parts, *(gap.text for gap in observations.gaps if gap.reason.is_failure)])

    async def _seen_by(self, team: Team) -> tuple[Observations, IncidentSignals]:
        observations, incident_signals = await self._seen_from(self._incident.service)
        if team.services and not team.services.intersection(observations.services):
            observations, incident_signals = await self._seen_from(_nearest(team, self._incident))
        return observations, incident_signals

    async def _seen_from(self, service: str) -> tuple[Observations, IncidentSignals]:
        if service not in self._observed:
            self._observed[service] = asyncio.ensure_future(self._look(service))
        return await self._observed[service]

    async def _look(self, service: str) -> tuple[Observations, IncidentSignals]:
        observations = await self._observe(replace(self._incident, service=service))
        return observations, await asyncio.to_thread(survey, observations)


def _nearest(team: Team, incident: Incident) -> str:
    words = set(terms(incident.description))
    return min(team.services, key=lambda service: (-len(words & set(terms(service))), service))
