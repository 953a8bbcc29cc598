"""A silenced incident is not posted, one that another explains is a part of it, and nothing is lost by either."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.incidents.folding import MINUTES
from core.incidents.incident_view import incident_view
from core.model.alert import Severity
from core.model.findings import Relation, RelationKind
from core.model.incident import Incident, Silenced, Stage
from core.model.messages import IncidentMessage
from core.model.silences import Maintenance, Matcher, Silence
from core.ports import AlertState
from handlers.common.ports import Ports
from handlers.incidents import arrange_incident as arrange_module
from handlers.incidents.arrange_incident import is_investigated, watch_incidents
from handlers.incidents.present_incident import present_details
from handlers.questions.doors import ShownAgain
from tests.fakes.ports import some_ports
from tests.samples import START, owner
from tests.unit.handlers.arrangement import CHANNELS, HOUR, World, world

__all__ = ["world"]  # the fixture


async def test_what_depends_on_a_failing_service_is_looked_into_and_a_join_is_only_suggested(world: World) -> None:
    await world.shows(await world.opens("db"))
    world.clock.advance(61)
    dependent = await world.shows(await world.opens("api"))
    assert dependent.part_of is None
    readers = ("channel:incidents", "channel:slack:C0INC", "public")
    reasons = ("api depends on db",)
    suggested = Relation(RelationKind.MAY_BE_PART_OF, "db", "db is slow", reasons, readers=readers)
    assert dependent.relations == (suggested,)
    assert "investigate_incident api" in world.waiting()


async def test_once_its_cause_is_found_in_the_failing_service_it_is_shown_as_a_part(world: World) -> None:
    await world.shows(await world.opens("db"))
    world.clock.advance(61)
    await world.shows(await world.opens("api"))
    await world.finds("api", "db")
    part = await world.shows("api")
    assert part.part_of is not None
    assert (part.part_of.incident_id, part.part_of.reason) == ("db", "api depends on db, where its cause was found")
    assert (len(part.relations), part.findings.explanation is None) == (1, False)
    parent = world.message("api").leader
    assert parent is not None
    assert (parent.incident_id, parent.url) == ("db", "https://chat.example/1")
    assert "present_incident db" in world.waiting()
    await world.shows("db")
    assert [(each.incident_id, each.alert_count) for each in world.message("db").parts] == [("api", 1)]
    await present_details("api", some_ports(store=world.store, poster=world.poster))
    assert len(world.chat.posted) == 3, "what was found is told in its own thread"


async def test_a_critical_incident_of_the_same_alert_is_triaged_before_it_is_shown_as_a_part(world: World) -> None:
    await world.shows(await world.opens("db"))
    world.clock.advance(9)
    alone = await world.shows(await world.opens("again", fingerprint="db"))
    assert (alone.severity, alone.part_of, alone.findings.owner) == (Severity.CRITICAL, None, None)
    triaged = replace(alone.with_findings(owner=owner()), stage=Stage.EXPLAINING, revision=alone.revision + 1)
    await world.store.incidents.save(triaged)
    part = await world.shows("again")
    assert part.part_of is not None
    assert part.part_of.incident_id == "db"
    assert incident_view(world.message("again")).progress == "", "nobody goes on with it"


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"relations": (Relation(RelationKind.PART_OF, "db", at=START),)},
        {"taken_by": "Ada"},
        {"silenced": Silenced("maintenance", "new ledger", START + HOUR)},
    ],
    ids=["merged", "taken", "silenced"],
)
async def test_a_change_while_a_monitoring_system_is_asked_for_silences_is_arranged(
    world: World, meanwhile: dict[str, Any]
) -> None:
    class SlowMonitor:
        name = "Alertmanager"

        async def firing(self, incident: Incident) -> AlertState: ...

        async def silences(self) -> list[Silence]:
            incident = world.store.incidents.by_id["api"]
            await world.store.incidents.save(replace(incident, **meanwhile, revision=incident.revision + 1))
            return []

    await world.opens("api")
    ports = world.ports(monitors=[SlowMonitor()])
    arranged = await arrange_module.arrange_incident(world.store.incidents.by_id["api"], ports)
    assert arranged == world.store.incidents.by_id["api"]


async def test_once_its_cause_is_found_elsewhere_nothing_is_suggested(world: World) -> None:
    await world.shows(await world.opens("db"))
    world.clock.advance(61)
    await world.shows(await world.opens("api"))
    await world.finds("api", "login")
    alone = await world.shows("api")
    assert alone.relations == ()


async def test_what_is_not_looked_into_has_no_details(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.opens("api", cause="db")
    incident = world.store.incidents.by_id["api"]
    part_of_db = Relation(RelationKind.PART_OF, "db", at=START)
    await world.store.incidents.save(
        replace(incident.with_findings(explanation=None), relations=(part_of_db,), revision=3)
    )
    await world.shows("api")
    await present_details("api", some_ports(store=world.store, poster=world.poster))
    assert len(world.chat.posted) == 1, "the incident that it is a part of tells of it"


async def test_a_cause_that_is_noticed_later_absorbs_the_symptoms_that_point_at_it(world: World) -> None:
    for service in ("web", "api"):
        await world.shows(await world.opens(service, cause="db"))
        world.clock.advance(61)
    await world.shows(await world.opens("db"))
    assert {each.incident_id for each in world.message("db").parts} == {"api", "web"}
    assert "present_incident api" in world.waiting()


async def test_a_private_incident_is_never_a_part_of_a_public_one(world: World) -> None:
    await world.shows(await world.opens("db"))
    assert (await world.shows(await world.opens("api", "C0SECRET", cause="db"))).part_of is None


async def test_shown_again_an_incident_still_says_what_it_belongs_to(world: World) -> None:
    await world.shows(await world.opens("db"))
    world.clock.advance(61)
    await world.shows(await world.opens("api"))
    await world.finds("api", "db")
    part = await world.shows("api")
    parent = await world.shows("db")
    again = ShownAgain(world.store, channels=CHANNELS, link=world.poster.link)
    for incident in (part, parent):
        assert incident.placement.message is not None
        shown, posted = await again.message(incident.placement.message), world.message(incident.id)
        assert isinstance(shown, IncidentMessage)
        assert (shown.leader, shown.parts) == (posted.leader, posted.parts)
    assert world.message("api").leader is not None


async def test_a_part_that_goes_on_after_its_leader_is_over_stands_for_itself(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.shows(await world.opens("api", cause="db"))
    ports = world.ports()
    await world.resolves("db")
    await watch_incidents(ports)
    assert world.store.incidents.by_id["api"].part_of is not None, "it may follow within minutes"
    world.clock.advance(MINUTES.total_seconds())
    await watch_incidents(ports)
    assert world.store.incidents.by_id["api"].part_of is None
    assert world.waiting().count("investigate_incident api") == 2


def maintenance(world: World, service: str, hours: int = 1) -> Ports:
    matcher = Matcher("service", frozenset({service}))
    window = Silence("w1", (matcher,), START - HOUR, START + hours * HOUR, reason="new disks")
    return world.ports(maintenance=Maintenance((window,)))


async def test_a_silenced_incident_is_recorded_and_posted_when_its_window_is_over(world: World) -> None:
    ports = maintenance(world, "db")
    silenced = await world.shows(await world.opens("db"), ports)
    assert silenced.silenced is not None
    assert (silenced.silenced.reason, silenced.silenced.until) == ("new disks", START + HOUR)
    assert world.chat.posted == []
    await watch_incidents(ports)
    assert world.waiting() == ["investigate_incident db"]
    world.clock.advance(3600)
    await watch_incidents(ports)
    assert world.waiting().count("investigate_incident db") == 2
    assert (await world.shows("db", ports)).silenced is None
    assert len(world.chat.posted) == 1


async def test_of_more_incidents_than_are_read_at_once_each_is_looked_after(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrange_module, "PART", 1)
    for service in ("cache", "web", "db"):
        await world.shows(await world.opens(service), maintenance(world, service))
    world.clock.advance(3600)
    await watch_incidents(world.ports())
    assert [each.silenced for each in world.store.incidents.by_id.values()] == [None] * 3


async def test_what_was_silenced_and_resolved_meanwhile_is_never_posted(world: World) -> None:
    ports = maintenance(world, "db")
    await world.shows(await world.opens("db"), ports)
    await world.resolves("db")
    world.clock.advance(3600)
    await watch_incidents(ports)
    await world.shows("db", ports)
    assert world.chat.posted == []


async def test_an_incident_that_is_silenced_after_it_was_posted_says_so(world: World) -> None:
    await world.shows(await world.opens("db"))
    await watch_incidents(maintenance(world, "db"))
    await world.shows("db", maintenance(world, "db"))
    assert world.message("db").incident.silenced is not None
    assert len(world.chat.posted) == 1


async def test_a_silenced_incident_explains_nothing(world: World) -> None:
    await world.shows(await world.opens("db"), maintenance(world, "db"))
    alone = await world.shows(await world.opens("api", cause="db"))
    assert alone.relations == ()


async def test_a_part_that_only_arrived_together_leaves_with_its_siblings_once_it_has_another_cause(
    world: World,
) -> None:
    async def done(name: str, cause: str) -> None:
        await world.finds(name, cause)
        incident = world.store.incidents.by_id[name]
        await world.store.incidents.save(replace(incident, stage=Stage.DONE, revision=incident.revision + 1))

    for name, service in (("db", "db"), ("api", "api"), ("api again", "api"), ("web", "web")):
        await world.shows(await world.opens(service, incident_id=name))
        world.clock.advance(1)
    whole, *parts = world.store.incidents.by_id.values()
    assert [part.part_of is not None and part.part_of.incident_id for part in parts] == ["db", "db", "db"]
    assert len(world.chat.posted) == 1
    async with world.store.transaction() as transaction:
        looked_into = [await is_investigated(each, transaction) for each in (whole, *parts)]
    assert looked_into == [True, True, False, True], "one of each service"
    await done("web", "db")
    await done("api", "api")
    await world.shows("api")
    assert len(world.chat.posted) == 1, "nothing leaves before the whole is investigated"
    await done("db", "db")
    for name in ("db", "api", "api again", "web"):
        await world.shows(name)
    places = {
        each.id: each.part_of.incident_id if each.part_of else "" for each in world.store.incidents.by_id.values()
    }
    assert places == {"db": "", "api": "", "api again": "api", "web": "db"}
    assert len(world.chat.posted) == 2
    assert "present_held api" in world.waiting(), "its details follow"
