"""A store, a chat and a clock around the handlers that arrange incidents."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.model.alert import AlertDelivery, Severity
from core.model.conversation import Audience, Channel, Person, Place, Platform
from core.model.errors import ChatBusy
from core.model.incident import Incident, IncidentState
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, IncidentMessage
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.incidents.arrange_incident import arrange_incident
from handlers.incidents.open_incident import open_incident
from handlers.incidents.present_incident import present_incident
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import START, alert, explanation, hypothesis

CALLS = {"api": ("db",), "web": ("api",)}
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("secret", {Platform.SLACK: "C0SECRET"}, private=True),
)
HOUR = timedelta(hours=1)
ADA = Person(Platform.SLACK, "U0ADA", "Ada")


class World:
    """A store, a chat and a clock around the handlers."""

    def __init__(self) -> None:
        self.store = InMemoryStore()
        self.chat = RecordingMessenger()
        self.poster = Poster(self.store, {Platform.SLACK: self.chat})
        self.clock = FakeClock(START)

    async def opens(
        self,
        service: str,
        channel: str = "C0INC",
        cause: str = "",
        fingerprint: str = "",
        incident_id: str = "",
        severity: Severity = Severity.CRITICAL,
    ) -> str:
        """An alert of a service arrives, and its cause is found in service `cause`; the id of its incident is the service,
        unless it is given.
        """
        name = incident_id or service
        fired = replace(alert(), fingerprint=fingerprint or name, service=service, summary=f"{name} is slow", name=name)
        fired = replace(fired, starts_at=self.clock.now(), labels={"service": service}, severity=severity)
        arrived = AlertDelivery(name, "alertmanager", name, (fired,), self.clock.now())
        place = Place(Platform.SLACK, channel)
        incident = await open_incident(arrived, store=self.store, places_for=lambda _: (place,), new_id=lambda: name)
        assert incident is not None
        if cause:
            await self.finds(service, cause)
        return incident.id

    async def finds(self, incident_id: str, cause: str) -> None:
        """The investigation of an incident finds its cause in this service."""
        incident = self.store.incidents.by_id[incident_id]
        found = explanation(hypotheses=(replace(hypothesis(), service=cause),))
        await self.store.incidents.save(
            replace(incident.with_findings(explanation=found), revision=incident.revision + 1)
        )

    def ports(self, **given: Any) -> Ports:
        """The ports of this world, with the channels and calls of the tests."""
        world = {"store": self.store, "poster": self.poster, "clock": self.clock}
        return some_ports(**world, **{"channels": CHANNELS, "dependencies": CALLS} | given)

    async def shows(self, incident_id: str, ports: Ports | None = None) -> Incident:
        ports = ports or self.ports()
        await arrange_incident(self.store.incidents.by_id[incident_id], ports)
        while not await self.is_shown(incident_id, ports):  # it waits for what may arrive with it
            pass
        return self.store.incidents.by_id[incident_id]

    async def is_shown(self, incident_id: str, ports: Ports) -> bool:
        """Show an incident, unless it has to wait, which takes its time."""
        try:
            await present_incident(incident_id, ports)
        except ChatBusy as busy:
            self.clock.advance(busy.retry_after or 0)
            return False
        return True

    def message(self, incident_id: str) -> IncidentMessage:
        """The incident's message as it stands."""
        shown = [each for each in self.chat.standing.values() if isinstance(each, IncidentMessage)]
        return next(each for each in shown if each.incident.id == incident_id)

    def waiting(self) -> list[str]:
        """The workflows that were asked for, and of which incident."""
        return [f"{task.workflow} {task.subject}" for task in self.store.tasks.added.values()]

    async def resolves(self, incident_id: str) -> None:
        incident = self.store.incidents.by_id[incident_id]
        over = replace(incident, state=IncidentState.RESOLVED, resolved_at=self.clock.now())
        await self.store.incidents.save(replace(over, revision=incident.revision + 1))


@pytest.fixture
def world() -> World:
    return World()


def pressed(verdict: ButtonAction, subject: str, choice: str = "") -> Feedback:
    place = Place(Platform.SLACK, "C0INC", "1")
    return Feedback(f"{verdict} {subject}", verdict, subject, ADA, place, START, audience=Audience(), choice=choice)
