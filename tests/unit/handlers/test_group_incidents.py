"""People put incidents together and take them apart, whatever the rules say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields

import pytest

from core.model.conversation import Platform
from core.model.findings import Relation, RelationKind
from core.model.incident import Incident
from core.model.messages import ButtonAction, JoinRequest, Notice
from handlers.common.post_message import Poster
from handlers.incidents import reassign_incident as group_module
from handlers.incidents.reassign_incident import (
    NONE_OPEN,
    PICK_INCIDENT,
    ask_for_parent,
    join_incident,
    separate_incident,
)
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.fakes.store.incidents import InMemoryIncidents
from tests.unit.handlers.arrangement import CHANNELS, World, pressed, world

__all__ = ["world"]  # the fixture

KEPT = [each.name for each in fields(InMemoryIncidents)]


class SlowlySaved(InMemoryIncidents):
    """Another transaction may read before what this one saves is seen."""

    async def save(self, incident: Incident) -> None:
        await asyncio.sleep(0)
        await InMemoryIncidents.save(self, incident)


class Overlapping(InMemoryStore):
    """Transactions that do not wait for each other, as those of several processes on one PostgreSQL."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[InMemoryStore]:
        yield self


async def test_a_separated_incident_is_looked_into_and_never_absorbed_again(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.shows(await world.opens("api", cause="db"))
    await separate_incident(pressed(ButtonAction.SEPARATE, "api"), some_ports(store=world.store))
    alone = await world.shows("api")
    assert alone.relations == (Relation(RelationKind.APART_FROM, "db"),)
    assert world.waiting().count("investigate_incident api") == 2
    assert world.message("api").leader is None
    await world.shows("db")
    assert world.message("db").parts == ()
    await separate_incident(pressed(ButtonAction.SEPARATE, "api"), some_ports(store=world.store))
    assert world.store.incidents.by_id["api"] == alone, "pressed twice, it does nothing more"


async def test_a_person_puts_incidents_together_that_no_rule_connects(world: World) -> None:
    await world.shows(await world.opens("shelf"))
    await world.shows(await world.opens("till"))
    await world.shows(await world.opens("vault", "C0SECRET"))
    await ask_for_parent(
        pressed(ButtonAction.BELONGS, "till"), some_ports(channels=CHANNELS, store=world.store, poster=world.poster)
    )
    assert list(world.chat.standing.values())[-1] == JoinRequest("till", (("shelf", "shelf is slow"),))
    for choice in ("vault", "", "till"):
        join = pressed(ButtonAction.JOIN, "till", choice)
        await join_incident(join, some_ports(channels=CHANNELS, store=world.store, poster=world.poster))
        assert world.store.incidents.by_id["till"].part_of is None, "it may not be picked"
    assert list(world.chat.standing.values())[-1] == Notice(PICK_INCIDENT, only_for=join.person)
    join = pressed(ButtonAction.JOIN, "till", "shelf")
    await join_incident(join, some_ports(channels=CHANNELS, store=world.store, poster=world.poster))
    merged = world.store.incidents.by_id["till"].part_of
    assert merged is not None
    assert (merged.incident_id, merged.person) == ("shelf", "Ada")
    join = pressed(ButtonAction.JOIN, "shelf", "till")
    await join_incident(join, some_ports(channels=CHANNELS, store=world.store, poster=world.poster))
    assert world.store.incidents.by_id["shelf"].part_of is None, "no circles"


async def test_a_person_joins_an_incident_to_the_suggested_one(world: World) -> None:
    await world.shows(await world.opens("db"))
    world.clock.advance(61)
    await world.shows(await world.opens("api"))
    join = pressed(ButtonAction.JOIN_SUGGESTED, "api")
    await join_incident(join, some_ports(channels=CHANNELS, store=world.store, poster=world.poster))
    part = world.store.incidents.by_id["api"]
    assert [(each.kind, each.incident_id, each.person) for each in part.relations] == [
        (RelationKind.PART_OF, "db", "Ada")
    ]


async def test_two_who_put_each_incident_into_the_other_at_once_make_no_circle(world: World) -> None:
    for service in ("shelf", "till"):
        await world.shows(await world.opens(service))
    store = Overlapping(incidents=SlowlySaved(**{each: getattr(world.store.incidents, each) for each in KEPT}))
    picks = (pressed(ButtonAction.JOIN, "till", "shelf"), pressed(ButtonAction.JOIN, "shelf", "till"))
    poster = Poster(store, {Platform.SLACK: world.chat})
    await asyncio.gather(
        *(join_incident(pick, some_ports(channels=CHANNELS, store=store, poster=poster)) for pick in picks)
    )
    assert [each.id for each in store.incidents.by_id.values() if each.part_of] == ["till"]


async def test_the_newest_of_many_open_incidents_can_be_picked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "MAX_PARTS", 2)
    for service in ("shelf", "till", "vault"):
        await world.opens(service)
        world.clock.advance(60)
    await ask_for_parent(
        pressed(ButtonAction.BELONGS, "till"), some_ports(channels=CHANNELS, store=world.store, poster=world.poster)
    )
    assert list(world.chat.standing.values())[-1] == JoinRequest("till", (("vault", "vault is slow"),))


async def test_what_is_put_elsewhere_is_told_no_more_where_it_was(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.shows(await world.opens("api", cause="db"))
    await world.shows(await world.opens("till"))
    await world.shows("db")
    asked = world.waiting().count("present_incident db")
    join = pressed(ButtonAction.JOIN, "api", "till")
    await join_incident(join, some_ports(channels=CHANNELS, store=world.store, poster=world.poster))
    assert world.waiting().count("present_incident db") == asked + 1
    await world.shows("db")
    assert world.message("db").parts == ()


async def test_alone_there_is_nothing_to_pick(world: World) -> None:
    await world.shows(await world.opens("till"))
    press = pressed(ButtonAction.BELONGS, "till")
    await ask_for_parent(press, some_ports(channels=CHANNELS, store=world.store, poster=world.poster))
    assert list(world.chat.standing.values())[-1] == Notice(NONE_OPEN, only_for=press.person)
