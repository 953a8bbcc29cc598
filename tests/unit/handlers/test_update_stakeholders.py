"""Who may send an update where, and what its draft says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.incidents.handover import draft_update
from core.model.alert import Severity
from core.model.conversation import PUBLIC, Audience, Channel, Person, Place, Platform, channel_audience
from core.model.incident import Incident, IncidentState
from core.model.messages import FilingRequest
from handlers.incidents.file_incident import NO_CHANNEL, draft_of_update
from tests.fakes.clock import FakeClock
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

CHANNELS = [
    Channel("incidents", {Platform.SLACK: "C1"}),
    Channel("status", {Platform.SLACK: "C2"}),
    Channel("board", {Platform.SLACK: "C3"}, private=True),
    Channel("page", {Platform.CONSOLE: "page"}),
]
HERE, BOARD = Place(Platform.SLACK, "C1"), Place(Platform.SLACK, "C3")
ADA = Person(Platform.SLACK, "U1", "Ada")
INCIDENT = explained_incident(id="i1", place=HERE)
OUTSIDERS = replace(channel_audience(HERE, CHANNELS), readers=frozenset({"channel:incidents"}))


async def offered(incident: Incident, audience: Audience) -> tuple[str, ...]:
    store = InMemoryStore()
    store.incidents.by_id[incident.id] = incident
    given = some_ports(store=store, clock=FakeClock(), channels=CHANNELS)
    draft = await draft_of_update(incident.id, audience, ADA, given)
    if isinstance(draft, FilingRequest):
        return draft.targets
    assert draft == NO_CHANNEL
    return ()


@pytest.mark.parametrize(
    ("incident", "audience", "targets"),
    [
        (INCIDENT, channel_audience(HERE, CHANNELS), ("status", "incidents")),
        (INCIDENT, channel_audience(BOARD, CHANNELS), ("status", "board", "incidents")),
        (INCIDENT.with_placement(place=BOARD), channel_audience(BOARD, CHANNELS), ("board",)),
        (INCIDENT, OUTSIDERS, ()),
    ],
    ids=["in a public channel", "in a private one", "about a private incident", "with outsiders"],
)
async def test_an_update_goes_where_everybody_may_know_of_the_incident(
    incident: Incident, audience: Audience, targets: tuple[str, ...]
) -> None:
    assert PUBLIC in audience.readers or not targets
    assert await offered(incident, audience) == targets


def test_a_draft_names_neither_people_nor_teams_nor_causes_in_technical_words() -> None:
    incident = replace(INCIDENT, service="payment-gateway", severity=Severity.CRITICAL, taken_by="Ada Quist")
    title, text = draft_update(incident, incident.started_at + timedelta(minutes=20))
    assert title == "Payment gateway: we are working on a problem"
    cause = incident.findings.cause
    assert cause is not None
    assert cause.short not in text
    for name in ("Ada", "Payments", incident.title):
        assert name not in text
    assert f"since {incident.started_at:%d %B, %H:%M} UTC" in text
    assert f"by {incident.started_at + timedelta(minutes=50):%d %B, %H:%M} UTC" in text


def test_the_draft_after_the_end_says_for_how_long_it_lasted() -> None:
    over = INCIDENT.started_at + timedelta(minutes=95)
    incident = replace(INCIDENT, service="", alerts=(), state=IncidentState.RESOLVED, resolved_at=over)
    title, text = draft_update(incident, over)
    assert title == "One of our systems: works again"
    assert "(1 h 35 min)" in text
    assert text.endswith("Next update: none, unless the problem comes back.")
