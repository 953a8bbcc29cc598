"""Whoever makes incidents parts of each other, at the same time as others on the same store, makes no circle of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from core.model.alert import AlertDelivery, Severity
from core.model.conversation import Audience, Channel, Person, Place, Platform
from core.model.incident import Incident
from core.model.message_view import Feedback
from core.model.messages import ButtonAction
from core.model.team import Dependencies
from core.ports import Store, Transaction
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.common.stored_incident import save_next, stored_incident, update_incident
from handlers.incidents import arrange_incident as arrange_module
from handlers.incidents import reassign_incident as group_module
from handlers.incidents.arrange_incident import arrange_incident
from handlers.incidents.open_incident import open_incident
from handlers.incidents.reassign_incident import join_incident
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.samples import START, alert, explanation, hypothesis

CHANNELS = (Channel("incidents", {Platform.SLACK: "C0INC"}),)
PLACE = Place(Platform.SLACK, "C0INC")
ADA = Person(Platform.SLACK, "U0ADA", "Ada")
PAUSE = 0.05  # seconds in which whoever is not kept waiting reads what is about to be changed


@pytest.fixture(autouse=True)
def slowly_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between what is read and what is saved, everybody else gets a turn."""

    async def slowly(changed: Incident, latest: Incident, transaction: Transaction) -> Incident:
        await asyncio.sleep(PAUSE)
        return await save_next(changed, latest, transaction)

    for module in (arrange_module, group_module):
        monkeypatch.setattr(module, "save_next", slowly)


async def opens(store: Store, service: str, fingerprint: str = "", cause: str = "") -> str:
    fired = replace(
        alert(),
        fingerprint=fingerprint or service,
        service=service,
        name=service,
        severity=Severity.WARNING,  # a critical one is triaged before it joins another
        starts_at=START,
    )
    arrived = AlertDelivery(service, "alertmanager", service, (fired,), START)
    incident = await open_incident(arrived, store=store, places_for=lambda _: (PLACE,), new_id=lambda: service)
    assert incident is not None
    if cause:
        found = explanation(hypotheses=(replace(hypothesis(), service=cause),))
        await update_incident(service, lambda latest: latest.with_findings(explanation=found), store)
    return service


async def leaders(store: Store) -> dict[str, str]:
    async with store.transaction() as transaction:
        return {
            each.id: each.part_of.incident_id if each.part_of else "" for each in await transaction.incidents.open(99)
        }


def shown(leader_of: Mapping[str, str]) -> dict[str, str]:
    """The incident whose message tells of each."""
    found: dict[str, str] = {}
    for incident in leader_of:
        above, seen = incident, {incident}
        while leader_of[above]:
            above = leader_of[above]
            assert above not in seen, f"{incident} is told of nowhere: {leader_of}"
            seen.add(above)
        found[incident] = above
    return found


def arranging(store: Store, dependencies: Dependencies) -> Ports:
    return some_ports(channels=CHANNELS, dependencies=dependencies, store=store, clock=FakeClock(START))


async def arrange(incident_id: str, ports: Ports) -> None:
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
    await arrange_incident(incident, ports)


async def test_a_rule_and_a_person_that_join_two_incidents_in_both_directions_make_no_circle(store: Store) -> None:
    await opens(store, "db")
    await opens(store, "api", cause="db")
    picks = Feedback("f1", ButtonAction.JOIN, "db", ADA, PLACE, START, choice="api", audience=Audience())
    poster = Poster(store, {Platform.SLACK: RecordingMessenger()})
    await asyncio.gather(
        join_incident(picks, some_ports(channels=CHANNELS, store=store, poster=poster)),
        arrange("api", arranging(store, {"api": ("db",)})),
    )
    assert len(set(shown(await leaders(store)).values())) == 1


async def test_what_a_person_joined_is_not_joined_the_other_way_round_by_a_rule(store: Store) -> None:
    await opens(store, "db")
    await opens(store, "api", cause="db")
    picks = Feedback("f1", ButtonAction.JOIN, "db", ADA, PLACE, START, choice="api", audience=Audience())
    poster = Poster(store, {Platform.SLACK: RecordingMessenger()})
    await join_incident(picks, some_ports(channels=CHANNELS, store=store, poster=poster))
    await arrange("api", arranging(store, {"api": ("db",)}))
    assert await leaders(store) == {"api": "", "db": "api"}


async def test_incidents_that_arrive_at_once_are_all_told_of_by_the_one_that_explains_them(store: Store) -> None:
    dependencies = {"api": ("db",), "web": ("api",), "app": ("web",)}
    ports = arranging(store, dependencies)
    services = [await opens(store, service, cause="db") for service in ("db", "api", "web", "app")]
    await asyncio.gather(*(arrange(each, ports) for each in services))
    assert shown(await leaders(store)) == dict.fromkeys(services, "db")


async def test_twins_that_arrive_at_once_become_one(store: Store) -> None:
    services = [await opens(store, f"twin {number}", fingerprint="same") for number in range(4)]
    ports = arranging(store, {})
    await asyncio.gather(*(arrange(each, ports) for each in reversed(services)))
    assert len(set(shown(await leaders(store)).values())) == 1
