"""Incidents that are held in quiet hours, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from core.model.conversation import Place
from core.ports import HeldIncident


@dataclass(slots=True)
class InMemoryHeldIncidents:
    """By channel and incident: what is held, and whether it was told."""

    held: dict[tuple[str, str, str], tuple[HeldIncident, bool]] = field(default_factory=dict)

    async def hold(self, incident_id: str, place: Place, at: datetime) -> None:
        key = (place.platform, place.channel, incident_id)
        if key not in self.held or self.held[key][1]:
            self.held[key] = HeldIncident(incident_id, place, at), False

    async def places(self, incident_id: str) -> frozenset[Place]:
        return frozenset(each.place for each, _ in self.held.values() if each.incident_id == incident_id)

    async def waiting(self) -> list[HeldIncident]:
        return [each for _, (each, told) in sorted(self.held.items(), key=_first) if not told]

    async def mark_reported(self, incident_id: str, place: Place) -> None:
        key = (place.platform, place.channel, incident_id)
        if key in self.held:
            self.held[key] = self.held[key][0], True

    async def release(self, incident_id: str, place: Place) -> None:
        self.held.pop((place.platform, place.channel, incident_id), None)


def _first(entry: tuple[tuple[str, str, str], object]) -> tuple[str, str, str]:
    return entry[0]
