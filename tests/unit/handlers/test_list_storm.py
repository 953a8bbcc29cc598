"""A storm is one message with a list, however long it lasts, and one for each incident that stands out of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.alert import Severity
from core.model.incident import Stage
from core.model.messages import Notice
from handlers.common.ports import Ports
from handlers.incidents.hold_incident import CALM, GATHER, MINUTE, present_storm, watch_storms
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


async def explained(world: World, name: str, cause: str, ports: Ports) -> None:
    """The investigation of an incident ends with a cause in this service."""
    await world.finds(name, cause)
    await changed(world, name, ports, stage=Stage.DONE)


async def changed(world: World, name: str, ports: Ports, **fields: object) -> None:
    incident = world.store.incidents.by_id[name]
    await world.store.incidents.save(replace(incident, **fields, revision=incident.revision + 1))
    await world.shows(name, ports)
    await shown(world, ports)


async def later(world: World, ports: Ports, seconds: float) -> None:
    """The time passes, and what is due is looked at."""
    world.clock.advance(seconds)
    await watch_storms(ports)
    for task in list(world.store.tasks.added.values()):
        if task.workflow == "present_held":
            await world.shows(task.subject, ports)
    await shown(world, ports)


async def test_a_storm_is_one_list_that_takes_the_place_of_its_first_message(world: World) -> None:
    await strike(world, *UNRELATED)
    assert own(world) == ["crane"], "it was posted before the third came"
    head, *listed, why = summary(world)
    assert head == "Many alerts at once: 4 incidents with 4 alerts since 09:30 UTC, 4 still open."
    assert listed == [f"• 🔴 {service} is slow · no owner yet" for service in ("badge", "dock", "ferry", "gate")]
    assert "a cause of its own" in why
    assert len(world.chat.posted) == 2


async def test_what_arrives_together_is_one_message(world: World) -> None:
    ports = world.ports(messages_per_minute=3)
    for service in UNRELATED:
        await world.opens(service)
    for service in UNRELATED:
        await world.shows(service, ports)
    await shown(world, ports)
    assert own(world) == []
    assert len(summary(world)) == 1 + len(UNRELATED) + 1
    assert len(world.chat.posted) == 1


async def test_each_line_of_the_list_leads_to_where_more_is_known(world: World) -> None:
    ports = replace(
        await strike(world, *UNRELATED), chats=replace(world.ports().chats, public_url="https://bot.example")
    )
    await changed(world, "gate", ports, title="gate is slower")
    (notice,) = [each for each in world.chat.standing.values() if isinstance(each, Notice)]
    linked = {text: url for text, url in notice.lines if text.startswith("•")}
    assert linked["• 🔴 gate is slower · no owner yet"] == "https://bot.example/incidents/gate"


async def test_of_fifty_alerts_every_critical_one_is_visible_at_once(world: World) -> None:
    ports = world.ports(messages_per_minute=3)
    critical, waiting = [number for number in range(50) if number % 5 == 4], list[str]()
    for number in range(50):  # within five seconds
        severity = Severity.CRITICAL if number in critical else Severity.WARNING
        waiting.append(await world.opens(f"s{number:02}", severity=severity))
        waiting = [each for each in waiting if not await world.is_shown(each, ports)]
        world.clock.advance(0.1)
    await shown(world, ports)
    assert not waiting
    titles = {f"s{number:02} is slow" for number in critical}
    assert {title for title in titles if not any(title in line for line in summary(world))} == set()
    assert len(world.chat.posted) <= 3


async def test_two_are_not_a_storm(world: World) -> None:
    await strike(world, *UNRELATED[:2])
    assert own(world) == ["badge", "crane"]
    assert len(world.chat.posted) == 2


async def test_a_second_one_waits_for_a_minute_a_critical_one_for_a_moment_and_one_with_a_cause_not_at_all(
    world: World,
) -> None:
    await strike(world, *UNRELATED[:2])
    assert world.clock.now() - START == GATHER, "it is critical"
    for kind, waits in (
        ({"severity": Severity.WARNING}, MINUTE),
        ({"severity": Severity.WARNING, "cause": "x"}, 0 * MINUTE),
    ):
        another = World()
        ports = another.ports(messages_per_minute=3)
        await another.shows(await another.opens("badge"), ports)
        await another.opens("crane", **kind)
        await changed(another, "crane", ports, stage=Stage.DONE)
        assert another.clock.now() - START == waits


async def test_what_fires_steadily_is_one_message_from_the_third_on(subtests: pytest.Subtests) -> None:
    for pause in (10.0, 45.0, 72.0):
        with subtests.test(f"every {pause:g} s"):
            world, waiting = World(), list[str]()
            ports = world.ports(messages_per_minute=3)
            for number in range(30):
                waiting.append(await world.opens(f"s{number:02}", severity=Severity.WARNING))
                waiting = [each for each in waiting if not await world.is_shown(each, ports)]
                await shown(world, ports)
                await later(world, ports, pause)
            assert own(world) == []
            assert len(world.chat.posted) == 1
            assert len(summary(world)) == 32


async def test_the_rest_of_a_storm_stays_in_the_list_however_long_it_lasts(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    for minute in range(60):
        await later(world, ports, MINUTE.total_seconds())
        if minute % 5 == 0:
            await world.shows(await world.opens(f"late{minute:02}"), ports)
    assert own(world) == ["crane"]
    assert len(world.chat.posted) == 2
    for incident_id in list(world.store.incidents.by_id):
        await world.resolves(incident_id)
        await world.shows(incident_id, ports)
    await later(world, ports, CALM.total_seconds())
    assert summary(world)[-1] == "All of them are over."
    assert len(world.chat.posted) == 2


async def test_what_is_left_of_a_storm_gets_its_own_message_if_it_is_little(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    for over in ("badge", "dock", "ferry"):
        await world.resolves(over)
        await world.shows(over, ports)
    await later(world, ports, 61)
    assert own(world) == ["crane"], "the storm may go on"
    await later(world, ports, CALM.total_seconds())
    assert own(world) == ["crane", "gate"]
    assert summary(world)[-1] == "All of them are over."


async def test_what_has_a_cause_of_its_own_leaves_the_list_at_once(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    await explained(world, "gate", "gate", ports)
    assert own(world) == ["crane", "gate"]
    assert len(summary(world)) == 1 + 3 + 1


async def test_what_has_the_cause_of_another_message_stays(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    for service in ("gate", "ferry"):
        await explained(world, service, "vault", ports)
    await later(world, ports, 61)
    assert own(world) == ["crane", "gate"]


async def test_what_somebody_takes_leaves_the_list_at_once(world: World) -> None:
    ports = await strike(world, *UNRELATED)
    await changed(world, "ferry", ports, taken_by="Ada")
    assert own(world) == ["crane", "ferry"]


async def test_the_list_takes_the_place_of_the_first_message_that_nobody_has(world: World) -> None:
    ports = world.ports(messages_per_minute=3)
    await world.shows(await world.opens("badge"), ports)
    await changed(world, "badge", ports, taken_by="Ada")
    for service in UNRELATED[1:]:
        await world.shows(await world.opens(service), ports)
    await shown(world, ports)
    assert own(world) == ["badge"]
    assert summary(world)[1] == "• 🔴 crane is slow · no owner yet"


async def test_what_somebody_has_keeps_its_message(world: World) -> None:
    ports = world.ports(messages_per_minute=3)
    await world.shows(await world.opens("badge"), ports)
    await changed(world, "badge", ports, taken_by="Ada")
    for service in UNRELATED[1:]:
        await world.shows(await world.opens(service), ports)
    await shown(world, ports)
    assert "badge" in own(world)
    assert not any("badge" in line for line in summary(world))


async def test_the_only_critical_one_has_its_message_at_once_in_the_thread_of_the_list(world: World) -> None:
    ports = world.ports(messages_per_minute=3)
    for service in UNRELATED[:4]:
        await world.opens(service, severity=Severity.WARNING)
    for service in UNRELATED[:4]:
        await world.shows(service, ports)
    for service in ("gate", "hatch"):
        await world.shows(await world.opens(service), ports)
        await shown(world, ports)
        await later(world, ports, 1)
        assert own(world) == ["gate"], "hatch is as severe"
    await changed(world, "gate", ports, taken_by="Ada")
    await later(world, ports, 61)
    assert summary(world)[1:3] == ["• 🔴 gate is slow · Ada", "• 🔴 hatch is slow · no owner yet"], (
        "both stay in the list"
    )
    assert [place.thread for place, _ in world.chat.posted] == [None, "1"]


async def test_the_limit_of_a_minute_holds_for_what_leaves_the_list(world: World) -> None:
    ports = await strike(world, *UNRELATED, "hatch")
    for service in ("dock", "ferry", "gate", "hatch"):
        await explained(world, service, service, ports)
    assert own(world) == ["crane", "dock", "ferry"]
    for _ in range(2):
        await later(world, ports, 61)
    assert own(world) == ["crane", "dock", "ferry", "gate", "hatch"]


async def test_a_part_of_another_incident_is_listed_nowhere(world: World) -> None:
    ports = await strike(world, *UNRELATED[:3], "db")
    assert len(summary(world)) == 1 + 3 + 1
    world.clock.advance(1)
    await world.shows(await world.opens("api"), ports)
    await shown(world, ports)
    assert [line for line in summary(world) if "db" in line or "api" in line] == [
        "• 🔴 db is slow · 2 alerts · no owner yet"
    ]


async def test_the_next_storm_has_a_list_of_its_own(world: World) -> None:
    ports = await strike(world, *UNRELATED[:4])
    world.clock.advance(2 * CALM.total_seconds())
    for service in ("hatch", "mooring", "pilot"):
        await world.shows(await world.opens(service), ports)
    await shown(world, ports)
    lists = [each for each in world.chat.standing.values() if isinstance(each, Notice)]
    assert ["dock" in each.text for each in lists] == [True, False]
    assert "pilot" in lists[1].text
