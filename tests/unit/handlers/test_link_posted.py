"""The line in the thread of a message whose incident is in another thread."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest

from adapters.posted.recognise import recognise
from core.model.alert import Adoption, Posted
from core.model.conversation import Place, Platform
from core.model.incident import Stage
from core.model.messages import Notice
from handlers.common.ports import AdoptionPorts, Ports
from handlers.incidents.adopt_alerts import BETWEEN, LINK, PLACE, link_posted, take_posted
from handlers.incidents.open_incident import open_incident
from handlers.incidents.present_incident import present_incident
from tests.samples import START
from tests.unit.handlers.arrangement import World, world

__all__ = ["world"]  # the fixture

HERE = Place(Platform.SLACK, "C0INC")


async def posts(world: World, ts: str, ports: Ports, revision: str = "") -> None:
    """A bot posts the alert again; what was asked for is done."""
    at = START + timedelta(minutes=int(ts))
    lines, severity = ("Firing: TillSlow",), (("Severity", "high"),)
    posted = Posted(HERE, ts, "A0BELL", "Bell", at, lines, severity, colours=("a30200",), revision=revision)
    accept = partial(
        open_incident, store=world.store, places_for=lambda each: (each.at or HERE,), new_id=lambda: f"i{ts}"
    )
    adoption = AdoptionPorts(recognise=recognise, configured={HERE: Adoption(is_on=True)})
    await take_posted(posted, adoption=adoption, accept=accept, store=world.store)
    await present_incident("i1", ports)
    for task in [each for each in world.store.tasks.added.values() if each.workflow == LINK]:
        await link_posted(task.subject, PLACE.validate_python(task.payload["place"]), ports)


async def test_an_alert_that_is_posted_again_and_again_gets_one_line_that_counts(world: World) -> None:
    ports = world.ports()
    for ts in ("1", "2", "3", "4"):
        await posts(world, ts, ports)
    notices = {place.thread: each.text for place, each in world.chat.posted if isinstance(each, Notice)}
    assert list(notices) == ["2"], "in the thread of the first further message"
    (line,) = [each for each in world.chat.standing.values() if isinstance(each, Notice)]
    assert line.text == "This belongs to an incident that I already follow. It was posted 2 more times since."
    assert list(line.links) == [await ports.poster.link(world.message("i1").incident.placement.message or unknown())]


async def test_an_edit_of_a_further_message_is_no_repeat(world: World) -> None:
    ports = world.ports()
    for ts, revision in (("1", ""), ("2", ""), ("2", "1"), ("2", "2")):
        await posts(world, ts, ports, revision)
    (line,) = [each for each in world.chat.standing.values() if isinstance(each, Notice)]
    assert line.text == "This belongs to an incident that I already follow."


def unknown():
    raise AssertionError("It has no message.")


async def test_a_first_message_gets_no_line(world: World) -> None:
    await posts(world, "1", world.ports())
    assert [type(each) for _, each in world.chat.posted if isinstance(each, Notice)] == []
    assert world.message("i1").incident.placement.place == replace(HERE, thread="1")


class BusyChannel:
    """A channel that is read at looks alone, in which a bot posts the alert of a webhook at a time, if it does."""

    def __init__(self, world: World, posted_at: float | None) -> None:
        self._world = world
        self._posted_at = posted_at
        self.looks: list[float] = []  # seconds after the webhook

    async def recent(self, place: Place, limit: int) -> tuple[int, tuple[Posted, ...]]:
        raise NotImplementedError

    async def first(self, place: Place) -> Posted | None:
        raise NotImplementedError

    async def look(self, place: Place, since: datetime) -> bool:
        before = self.looks[-1] if self.looks else -BETWEEN.total_seconds()
        if before >= (since - START).total_seconds():
            return False
        self.looks.append((self._world.clock.now() - START).total_seconds())
        return self._posted_at is not None and before < self._posted_at <= self.looks[-1]


async def test_a_webhook_waits_for_a_look_after_its_time_and_for_what_that_brings_however_long_the_bot_was_off(
    subtests: pytest.Subtests,
) -> None:
    for case, off, posted_at, looks, shown_at in (
        ("nobody posts it", 0, None, [0, 5, 10, 15, 20], 20),
        ("it is posted just before the end", 0, 18, [0, 5, 10, 15, 20], 21),
        ("it was posted while the bot was off", 3600, 5, [3600], 3601),
    ):
        with subtests.test(case):
            world = World()
            channel, configured = BusyChannel(world, posted_at), {HERE: Adoption(is_on=True)}
            adopting = AdoptionPorts(recognise=recognise, configured=configured, channels={Platform.SLACK: channel})
            await world.opens("till")
            await world.store.incidents.save(replace(world.store.incidents.by_id["till"], stage=Stage.DONE, revision=2))
            world.clock.advance(off)
            await world.shows("till", replace(world.ports(), adoption=adopting))
            assert channel.looks == looks
            assert world.clock.now() == START + timedelta(seconds=shown_at)


async def test_a_channel_that_cannot_be_read_in_time_keeps_no_alert_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(BusyChannel):
        async def look(self, place: Place, since: datetime) -> bool:
            return await asyncio.Future[bool]()

    adopting = AdoptionPorts(
        recognise=recognise,
        configured={HERE: Adoption(is_on=True)},
        channels={Platform.SLACK: Hanging(world, None)},
    )
    await world.opens("till")
    world.clock.advance(3600)
    monkeypatch.setattr("handlers.incidents.adopt_alerts.BETWEEN", timedelta(seconds=0.01))
    async with asyncio.timeout(30):
        await world.shows("till", replace(world.ports(), adoption=adopting))
    assert len(world.chat.standing) == 1
