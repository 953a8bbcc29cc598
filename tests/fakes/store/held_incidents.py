"""Incidents that are held in quiet hours, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from core.model.alert import Severity
from core.model.conversation import Place
from core.model.incident import IncidentState
from core.ports import HeldIncident
from tests.fakes.store.incidents import InMemoryIncidents


@dataclass(slots=True)
class InMemoryHeldIncidents:
    """By channel and incident: what is held, and whether it was told."""

    incidents: InMemoryIncidents = field(default_factory=InMemoryIncidents)
    held: dict[tuple[str, str, str], tuple[HeldIncident, bool]] = field(default_factory=dict)

    async def hold(self, incident_id: str, place: Place, at: datetime, storm: str = "") -> None:
        key = (place.platform, place.channel, incident_id)
        if key not in self.held or self.held[key][1]:
            self.held.pop(key, None)  # the latest is the last
            self.held[key] = HeldIncident(incident_id, place, at, storm), False

    async def places(self, incident_id: str) -> frozenset[Place]:
        return frozenset(each.place for each, _ in self.held.values() if each.incident_id == incident_id)

    async def waiting(self) -> list[HeldIncident]:
        return [each for _, (each, told) in sorted(self.held.items(), key=_first) if not told and not each.storm]

    async def listing(self, incident_id: str, place: Place) -> HeldIncident | None:
        each, _ = self.held.get((place.platform, place.channel, incident_id), (None, False))
        return each if each is not None and each.storm else None

    async def latest(self, incident_id: str, place: Place) -> HeldIncident | None:
        channel, latest = (place.platform, place.channel), reversed(self.held.items())
        here = (each for key, (each, _) in latest if key[:2] == channel and each.storm)
        return await self.listing(incident_id, place) or next(here, None)

    async def listed(self, storm: str) -> list[HeldIncident]:
        found = [each for each, _ in self.held.values() if each.storm == storm]
        return sorted(found, key=lambda each: (*self._rank(each.incident_id), each.held_at, each.incident_id))

    def _rank(self, incident_id: str) -> tuple[bool, int]:
        incident = self.incidents.by_id.get(incident_id)
        if incident is None:
            return True, len(Severity)
        return incident.state is not IncidentState.OPEN, [*Severity].index(incident.severity)

    async def storms(self, since: datetime) -> dict[str, Place]:
        found = [each for each, _ in self.held.values() if each.storm and each.held_at >= since]
        return {each.storm: each.place for each in sorted(found, key=lambda each: each.held_at)}

    async def mark_reported(self, incident_id: str, place: Place) -> None:
        key = (place.platform, place.channel, incident_id)
        if key in self.held:
            self.held[key] = self.held[key][0], True

    async def release(self, incident_id: str, place: Place) -> None:
        self.held.pop((place.platform, place.channel, incident_id), None)


def _first(entry: tuple[tuple[str, str, str], object]) -> tuple[str, str, str]:
    return entry[0]
