"""In a storm, a channel gets a few messages, and one that lists what has none; nothing is lost by it."""

from __future__ import annotations

from dataclasses import replace

from core.model.alert import Severity
from core.model.incident import Stage
from core.model.messages import Notice
from handlers.common.ports import Ports
from handlers.incidents.hold_incident import PATIENCE, present_storm, watch_storms
from tests.samples import START
from tests.unit.handlers.arrangement import World, world

__all__ = ["world"]  # the fixture

UNRELATED = ("badge", "crane", "dock", "ferry", "gate")


async def strike(world: World, *services: str) -> Ports:
    """An alert of each of these services at once; the ports of a channel that gets three messages a minute."""
    ports = world.ports(messages_per_minute=3)
    for service in services:
        await world.shows(await world.opens(service), ports)
    await shown(world, ports)
    return ports


async def shown(world: World, ports: Ports) -> None:
    """All updates of summaries that were asked for are made."""
    for task in list(world.store.tasks.added.values()):
        if task.workflow == "present_storm":
            await present_storm(task.subject, world.store.posts.by_intent[task.subject].place, ports)


def own(world: World) -> list[str]:
    """The incidents with a message of their own."""
    return [each.id for each in world.store.incidents.by_id.values() if each.placement.message is not None]


def summary(world: World) -> list[str]:
    (text,) = [each.text for each in world.chat.standing.values() if isinstance(each, Notice)]
    return text.splitlines()


async def later(world: World, ports: Ports, seconds: float) -> None:
    """The time passes, and what is due is looked at."""
    world.clock.advance(seconds)
    await watch_storms(ports)
    for task in list(world.store.tasks.added.values()):
        if task.workflow == "present_held":
            await world.shows(task.subject, ports)
    await shown(world, ports)


async def test_what_a_channel_has_no_room_for_is_listed_in_one_message(world: World) -> None:
    await strike(world, *UNRELATED)
    assert own(world) == ["badge", "crane"]
    head, *listed, why = summary(world)
    assert head == "Many alerts at once: 3 more incidents with 3 alerts since 09:30 UTC, 3 still open."
    assert listed == [f"• 🔴 {service} is slow · no owner yet" for service in ("dock", "ferry", "gate")]
    assert "at most 3 new messages a minute" in why
    assert "09:40 UTC" in why


async def test_of_fifty_alerts_every_critical_one_is_visible_at_once(world: World) -> None:
    ports = world.ports(messages_per_minute=3)
    critical = [number for number in range(50) if number % 5 == 4]
    for number in range(50):  # within five seconds
        severity = Severity.CRITICAL if number in critical else Severity.WARNING
        await world.shows(await world.opens(f"s{number:02}", severity=severity), ports)
        world.clock.advance(0.1)
    await shown(world, ports)
    titles = {f"s{number:02} is slow" for number in critical}
    assert {title for title in titles if not any(title in line for line in summary(world))} == set()
    assert len(world.chat.posted) <= 3


async def test_two_are_not_a_storm(world: World) -> None:
    await strike(world, *UNRELATED[:2])
    assert own(world) == ["badge", "crane"]
    assert len(world.chat.posted) == 2


async def test_what_still_goes_on_gets_its_own_message_as_soon_as_there_is_room(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    await later(world, ports, 61)
    assert own(world) == ["badge", "crane"], "a minute later three are still too many"
    await world.resolves("dock")
    await world.shows("dock", ports)
    await later(world, ports, PATIENCE.total_seconds())
    assert own(world) == ["badge", "crane", "ferry", "gate"]
    assert summary(world)[1] == "• ✅ dock is slow · over"
    assert summary(world)[-1] == "All of them are over."


async def test_few_wait_for_a_minute_only(world: World) -> None:
    ports = await strike(world, *UNRELATED[:4])
    await later(world, ports, 30)
    assert own(world) == ["badge", "crane"]
    await later(world, ports, 31)
    assert own(world) == ["badge", "crane", "dock", "ferry"]
    assert summary(world) == [
        "Many alerts at once: each incident that was listed here has its own message now, or is a part of another one."
    ]


async def test_what_has_a_cause_of_its_own_leaves_the_list(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    await world.finds("gate", "gate")
    incident = world.store.incidents.by_id["gate"]
    await world.store.incidents.save(replace(incident, stage=Stage.DONE, revision=incident.revision + 1))
    await world.shows("gate", ports)
    assert own(world) == ["badge", "crane"], "there is no room yet"
    await later(world, ports, 61)
    assert own(world) == ["badge", "crane", "gate"]
    assert len(summary(world)) == 4


async def test_a_part_of_another_incident_is_listed_nowhere(world: World) -> None:
    ports = await strike(world, *UNRELATED[:3], "db")
    assert len(summary(world)) == 4
    world.clock.advance(1)
    await world.shows(await world.opens("api"), ports)
    await shown(world, ports)
    assert [line for line in summary(world) if "db" in line or "api" in line] == [
        "• 🔴 db is slow · 2 alerts · no owner yet"
    ]


async def test_the_next_storm_has_a_list_of_its_own(world: World) -> None:
    ports = await strike(world, *UNRELATED[:4])
    world.clock.advance(2 * PATIENCE.total_seconds())
    for service in ("hatch", "mooring", "pilot"):
        await world.shows(await world.opens(service), ports)
    await shown(world, ports)
    lists = [each for each in world.chat.standing.values() if isinstance(each, Notice)]
    assert ["dock" in each.text for each in lists] == [True, False]
    assert "pilot" in lists[1].text
    assert world.clock.now() > START
