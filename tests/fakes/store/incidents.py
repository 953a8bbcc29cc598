"""Incidents in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from core.model.conversation import Place
from core.model.errors import Conflict
from core.model.incident import Incident, IncidentState

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class InMemoryIncidents:
    deliveries: set[str] = field(default_factory=set)
    by_id: dict[str, Incident] = field(default_factory=dict)
    opened_with: dict[str, frozenset[str]] = field(default_factory=dict)  # the fingerprints of each one's first alerts
    saved_at: dict[str, datetime] = field(default_factory=dict)

    async def known_deliveries(self, keys: Collection[str]) -> frozenset[str]:
        return frozenset(self.deliveries.intersection(keys))

    async def add_deliveries(self, received: Mapping[str, datetime]) -> None:
        self.deliveries.update(received)

    async def get(self, incident_id: str) -> Incident | None:
        return self.by_id.get(incident_id)

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        of_group = [each for each in self.by_id.values() if (each.source, each.group_key) == (source, group_key)]
        return max(of_group, key=lambda each: (each.state is IncidentState.OPEN, each.opened_at, each.id), default=None)

    async def in_thread(self, place: Place) -> Incident | None:
        in_it = [
            each
            for each in self.by_id.values()
            if (thread := each.placement.thread) is not None
            and (thread.platform, thread.channel, thread.thread) == (place.platform, place.channel, place.thread)
        ]
        return max(in_it, key=lambda each: each.opened_at, default=None)

    async def recent(self, limit: int) -> list[Incident]:
        return sorted(self.by_id.values(), key=lambda each: (each.opened_at, each.id), reverse=True)[:limit]

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        mine = self.opened_with.get(incident.id, frozenset())
        return [
            each
            for each in await self.open(len(self.by_id))
            if each.id != incident.id
            and each.opened_at >= since
            and (
                each.service in services
                or not mine.isdisjoint(self.opened_with[each.id])
                or bool(each.service and each.service == incident.service and each.source != incident.source)
            )
        ][:limit]

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        oldest = sorted(self.by_id.values(), key=lambda each: (each.opened_at, each.id))
        later = [each for each in oldest if after is None or (each.opened_at, each.id) > (after.opened_at, after.id)]
        return [each for each in later if each.state is IncidentState.OPEN][:limit]

    async def latest_open(self, limit: int, source: str = "") -> list[Incident]:
        opened = [each for each in await self.recent(len(self.by_id)) if each.state is IncidentState.OPEN]
        return [each for each in opened if each.source.startswith(source)][:limit]

    async def merged_into(self, incident_id: str, limit: int) -> list[Incident]:
        oldest = sorted(self.by_id.values(), key=lambda each: (each.opened_at, each.id))
        return [each for each in oldest if each.part_of and each.part_of.incident_id == incident_id][:limit]

    async def noted(self, limit: int) -> list[Incident]:
        return [each for each in await self.recent(len(self.by_id)) if each.resolution is not None][:limit]

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        latest = await self.recent(len(self.by_id))
        ended = [each for each in latest if each.resolution is not None or each.state is IncidentState.RESOLVED]
        return [each for each in ended if since is None or self.saved_at.get(each.id, LONG_AGO) >= since][:limit]

    async def save(self, incident: Incident) -> None:
        known = self.by_id.get(incident.id)
        rival = await self.latest_for(incident.source, incident.group_key)
        if (known.revision if known else 0) != incident.revision - 1:
            raise Conflict(f"Incident {incident.id}: revision {incident.revision} does not follow.")
        is_rivalled = rival is not None and rival.id != incident.id and rival.state is IncidentState.OPEN
        if incident.state is IncidentState.OPEN and is_rivalled:
            raise Conflict(f"Incident {incident.id}: another one is open.")
        self.opened_with.setdefault(incident.id, frozenset(alert.fingerprint for alert in incident.alerts))
        self.by_id[incident.id] = incident
        self.saved_at[incident.id] = datetime.now(UTC)
