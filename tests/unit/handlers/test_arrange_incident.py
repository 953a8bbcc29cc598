"""A silenced incident is not posted, one that another explains is a part of it, and nothing is lost by either."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from core.conversation import Audience, Channel, Person, Place, Platform
from core.errors import ToolUnavailable
from core.feedback import Feedback
from core.grouping import AFTER
from core.incident import AlertDelivery, Incident, IncidentState, Stage
from core.messages import IncidentMessage, JoinRequest, Notice, Verdict
from core.samples import START, alert
from core.silences import Maintenance, Matcher, Silence
from handlers import arrange_incident as arrange_module
from handlers import group_incidents as group_module
from handlers.arrange_incident import Surroundings, arrange_incident, watch_incidents
from handlers.check_firing import over_already
from handlers.group_incidents import NONE_OPEN, PICK_ONE, ask_where_it_belongs, join_incident, separate_incident
from handlers.open_incident import open_incident
from handlers.post_message import Poster
from handlers.present_incident import present_details, present_incident
from handlers.show_again import ShownAgain
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.store import InMemoryIncidents, InMemoryStore

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

    async def opens(self, service: str, channel: str = "C0INC") -> str:
        """An alert of a service arrives; the id of its incident is the service."""
        fired = replace(alert(), fingerprint=service, service=service, summary=f"{service} is slow", name=service)
        fired = replace(fired, starts_at=self.clock.now(), labels={"service": service})
        arrived = AlertDelivery(service, "alertmanager", service, (fired,), self.clock.now())
        place = Place(Platform.SLACK, channel)
        incident = await open_incident(arrived, store=self.store, places_for=lambda _: (place,), new_id=lambda: service)
        assert incident is not None
        return incident.id

    async def shows(self, incident_id: str, around: Surroundings | None = None) -> Incident:
        around = around or Surroundings(CHANNELS, (), CALLS)
        await arrange_incident(incident_id, around, store=self.store, clock=self.clock)
        await present_incident(incident_id, store=self.store, poster=self.poster, clock=self.clock, channels=CHANNELS)
        return self.store.incidents.by_id[incident_id]

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


@pytest.fixture
def world() -> World:
    return World()


def pressed(verdict: Verdict, subject: str, choice: str = "") -> Feedback:
    place = Place(Platform.SLACK, "C0INC", "1")
    return Feedback(f"{verdict} {subject}", verdict, subject, ADA, place, START, audience=Audience(), choice=choice)


async def test_a_later_symptom_is_shown_as_a_part_of_its_cause_and_not_looked_into(world: World) -> None:
    await world.shows(await world.opens("db"))
    part = await world.shows(await world.opens("api"))
    assert part.absorbed is not None
    assert (part.absorbed.leader, part.absorbed.reason) == ("db", "api depends on db")
    leader = world.message("api").leader
    assert leader is not None
    assert (leader.incident_id, leader.url) == ("db", "https://chat.example/1")
    assert "present_incident db" in world.waiting()
    await world.shows("db")
    assert [(each.incident_id, each.alert_count) for each in world.message("db").parts] == [("api", 1)]
    await present_details("api", store=world.store, poster=world.poster)
    assert len(world.chat.posted) == 2, "what was not looked into has no details"


async def test_a_cause_that_is_noticed_later_absorbs_the_symptoms_that_stand_there(world: World) -> None:
    for service in ("web", "api"):
        await world.shows(await world.opens(service))
        world.clock.advance(60)
    absorbed = world.store.incidents.by_id["web"].absorbed
    assert absorbed is not None
    assert absorbed.leader == "api"
    await world.shows(await world.opens("db"))
    assert {each.incident_id for each in world.message("db").parts} == {"api", "web"}, "also what is a part of a part"
    assert "present_incident api" in world.waiting()


async def test_a_private_incident_is_never_a_part_of_a_public_one(world: World) -> None:
    await world.shows(await world.opens("db"))
    assert (await world.shows(await world.opens("api", "C0SECRET"))).absorbed is None


async def test_a_separated_incident_is_looked_into_and_never_absorbed_again(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.shows(await world.opens("api"))
    await separate_incident(pressed(Verdict.SEPARATE, "api"), store=world.store)
    alone = await world.shows("api")
    assert (alone.absorbed, alone.apart_from) == (None, ("db",))
    assert world.waiting().count("investigate_incident api") == 2
    assert world.message("api").leader is None
    await world.shows("db")
    assert world.message("db").parts == ()
    await separate_incident(pressed(Verdict.SEPARATE, "api"), store=world.store)
    assert world.store.incidents.by_id["api"] == alone, "pressed twice, it does nothing more"


async def test_shown_again_an_incident_still_says_what_it_belongs_to(world: World) -> None:
    await world.shows(await world.opens("db"))
    part = await world.shows(await world.opens("api"))
    leader = await world.shows("db")
    again = ShownAgain(world.store, channels=CHANNELS, link=world.poster.link)
    for incident in (part, leader):
        assert incident.message is not None
        shown, posted = await again.message(incident.message), world.message(incident.id)
        assert isinstance(shown, IncidentMessage)
        assert (shown.leader, shown.parts) == (posted.leader, posted.parts)
    assert world.message("api").leader is not None


async def test_a_person_puts_incidents_together_that_no_rule_connects(world: World) -> None:
    await world.shows(await world.opens("shelf"))
    await world.shows(await world.opens("till"))
    await world.shows(await world.opens("vault", "C0SECRET"))
    await ask_where_it_belongs(
        pressed(Verdict.BELONGS, "till"), channels=CHANNELS, store=world.store, poster=world.poster
    )
    assert list(world.chat.standing.values())[-1] == JoinRequest("till", (("shelf", "shelf is slow"),))
    for choice in ("vault", "", "till"):
        join = pressed(Verdict.JOIN, "till", choice)
        await join_incident(join, channels=CHANNELS, store=world.store, poster=world.poster)
        assert world.store.incidents.by_id["till"].absorbed is None, "it may not be picked"
    assert list(world.chat.standing.values())[-1] == Notice(PICK_ONE)
    join = pressed(Verdict.JOIN, "till", "shelf")
    await join_incident(join, channels=CHANNELS, store=world.store, poster=world.poster)
    absorbed = world.store.incidents.by_id["till"].absorbed
    assert absorbed is not None
    assert (absorbed.leader, absorbed.person) == ("shelf", "Ada")
    join = pressed(Verdict.JOIN, "shelf", "till")
    await join_incident(join, channels=CHANNELS, store=world.store, poster=world.poster)
    assert world.store.incidents.by_id["shelf"].absorbed is None, "no circles"


async def test_two_who_put_each_incident_into_the_other_at_once_make_no_circle(world: World) -> None:
    for service in ("shelf", "till"):
        await world.shows(await world.opens(service))
    store = Overlapping(incidents=SlowlySaved(**{each: getattr(world.store.incidents, each) for each in KEPT}))
    picks = (pressed(Verdict.JOIN, "till", "shelf"), pressed(Verdict.JOIN, "shelf", "till"))
    poster = Poster(store, {Platform.SLACK: world.chat})
    await asyncio.gather(*(join_incident(pick, channels=CHANNELS, store=store, poster=poster) for pick in picks))
    assert [each.id for each in store.incidents.by_id.values() if each.absorbed] == ["till"]


async def test_the_newest_of_many_open_incidents_can_be_picked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "MAX_PARTS", 2)
    for service in ("shelf", "till", "vault"):
        await world.opens(service)
        world.clock.advance(60)
    await ask_where_it_belongs(
        pressed(Verdict.BELONGS, "till"), channels=CHANNELS, store=world.store, poster=world.poster
    )
    assert list(world.chat.standing.values())[-1] == JoinRequest("till", (("vault", "vault is slow"),))


async def test_what_is_put_elsewhere_is_told_no_more_where_it_was(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.shows(await world.opens("api"))
    await world.shows(await world.opens("till"))
    await world.shows("db")
    asked = world.waiting().count("present_incident db")
    join = pressed(Verdict.JOIN, "api", "till")
    await join_incident(join, channels=CHANNELS, store=world.store, poster=world.poster)
    assert world.waiting().count("present_incident db") == asked + 1
    await world.shows("db")
    assert world.message("db").parts == ()


async def test_alone_there_is_nothing_to_pick(world: World) -> None:
    await world.shows(await world.opens("till"))
    await ask_where_it_belongs(
        pressed(Verdict.BELONGS, "till"), channels=CHANNELS, store=world.store, poster=world.poster
    )
    assert list(world.chat.standing.values())[-1] == Notice(NONE_OPEN)


async def test_a_part_that_goes_on_after_its_leader_is_over_stands_for_itself(world: World) -> None:
    await world.shows(await world.opens("db"))
    await world.shows(await world.opens("api"))
    around = Surroundings(CHANNELS, (), CALLS)
    await world.resolves("db")
    await watch_incidents(around, store=world.store, clock=world.clock)
    assert world.store.incidents.by_id["api"].absorbed is not None, "it may follow within minutes"
    world.clock.advance(AFTER.total_seconds())
    await watch_incidents(around, store=world.store, clock=world.clock)
    assert world.store.incidents.by_id["api"].absorbed is None
    assert world.waiting().count("investigate_incident api") == 2


def maintenance(service: str, hours: int = 1) -> Surroundings:
    matcher = Matcher("service", frozenset({service}))
    window = Silence("w1", (matcher,), START - HOUR, START + hours * HOUR, reason="new disks")
    return Surroundings(CHANNELS, (), CALLS, Maintenance((window,)))


async def test_a_silenced_incident_is_recorded_and_posted_when_its_window_is_over(world: World) -> None:
    around = maintenance("db")
    silenced = await world.shows(await world.opens("db"), around)
    assert silenced.silenced is not None
    assert (silenced.silenced.reason, silenced.silenced.until) == ("new disks", START + HOUR)
    assert world.chat.posted == []
    await watch_incidents(around, store=world.store, clock=world.clock)
    assert world.waiting() == ["investigate_incident db"]
    world.clock.advance(3600)
    await watch_incidents(around, store=world.store, clock=world.clock)
    assert world.waiting().count("investigate_incident db") == 2
    assert (await world.shows("db", around)).silenced is None
    assert len(world.chat.posted) == 1


async def test_of_more_incidents_than_are_read_at_once_each_is_looked_after(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrange_module, "PART", 1)
    for service in ("cache", "web", "db"):
        await world.shows(await world.opens(service), maintenance(service))
    world.clock.advance(3600)
    await watch_incidents(Surroundings(CHANNELS), store=world.store, clock=world.clock)
    assert [each.silenced for each in world.store.incidents.by_id.values()] == [None] * 3


async def test_what_was_silenced_and_resolved_meanwhile_is_never_posted(world: World) -> None:
    around = maintenance("db")
    await world.shows(await world.opens("db"), around)
    await world.resolves("db")
    world.clock.advance(3600)
    await watch_incidents(around, store=world.store, clock=world.clock)
    await world.shows("db", around)
    assert world.chat.posted == []


async def test_an_incident_that_is_silenced_after_it_was_posted_says_so(world: World) -> None:
    await world.shows(await world.opens("db"))
    await watch_incidents(maintenance("db"), store=world.store, clock=world.clock)
    await world.shows("db", maintenance("db"))
    assert world.message("db").incident.silenced is not None
    assert len(world.chat.posted) == 1


async def test_a_silenced_incident_explains_nothing(world: World) -> None:
    await world.shows(await world.opens("db"), maintenance("db"))
    assert (await world.shows(await world.opens("api"))).absorbed is None


class Monitor:
    """Implements `core.ports.AlertMonitor`."""

    def __init__(self, *, fires: bool | None = None, silences: Sequence[Silence] = (), down: bool = False) -> None:
        self.name = "Alertmanager"
        self._fires = fires
        self._silences = list(silences)
        self._down = down

    async def firing(self, incident: Incident) -> bool | None:
        if self._down:
            raise ToolUnavailable("It is down.")
        return self._fires

    async def silences(self) -> list[Silence]:
        if self._down:
            raise ToolUnavailable("It is down.")
        return self._silences


async def test_silences_of_a_monitoring_system_count_and_one_that_is_down_silences_nothing(world: World) -> None:
    silence = Silence("s1", (Matcher("service", frozenset({"db"})),), START - HOUR, START + HOUR, by="Alertmanager")
    around = Surroundings(CHANNELS, (), CALLS, monitors=(Monitor(down=True), Monitor(silences=[silence])))
    assert (await world.shows(await world.opens("db"), around)).silenced is not None
    around = Surroundings(CHANNELS, (), CALLS, monitors=(Monitor(down=True),))
    assert (await world.shows(await world.opens("api"), around)).silenced is None


@pytest.mark.parametrize(
    ("monitors", "expected"),
    [
        ([], False),
        ([Monitor(fires=None), Monitor(down=True)], False),
        ([Monitor(fires=False)], True),
        ([Monitor(fires=False), Monitor(fires=True)], False),
        ([Monitor(fires=False), Monitor(down=True)], True),
    ],
)
async def test_a_long_analysis_is_spared_where_a_system_says_that_nothing_fires(
    world: World, monitors: list[Monitor], *, expected: bool
) -> None:
    incident = await world.shows(await world.opens("db"))
    assert bool(await over_already(incident, monitors)) is expected


async def test_a_resolved_incident_needs_no_long_analysis(world: World) -> None:
    await world.opens("db")
    await world.resolves("db")
    assert "resolved" in await over_already(world.store.incidents.by_id["db"], [Monitor(fires=True)])
    assert world.store.incidents.by_id["db"].stage is Stage.TRIAGING
