"""The contract of ChannelSettingsStore and HeldIncidentStore, over the fake and SQLite; PostgreSQL is external."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time

from core.model.alert import Adoption, Choice, Severity
from core.model.conversation import Place, Platform
from core.model.incident import IncidentState
from core.model.silences import ChannelSettings, QuietHours
from core.ports import HeldIncident, Store
from tests.samples import incident

CHANNEL = Place(Platform.TEAMS, "19:incidents@thread.tacv2", workspace="tenant")
OTHER = Place(Platform.SLACK, "C0INC")
NIGHT, LATER = datetime(2026, 3, 14, 23, tzinfo=UTC), datetime(2026, 3, 15, 1, tzinfo=UTC)
QUIET = ChannelSettings(QuietHours(time(22), time(7, 30), "Europe/Berlin", Severity.WARNING))


async def test_nothing_is_set_for_a_channel_that_nobody_set_anything_for(store: Store) -> None:
    async with store.transaction() as transaction:
        assert await transaction.channel_settings.get(CHANNEL) == ChannelSettings()


async def test_what_was_saved_last_holds_in_every_thread_of_the_channel(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.channel_settings.save(CHANNEL, ChannelSettings())
        await transaction.channel_settings.save(replace(CHANNEL, thread="17"), QUIET)
    async with store.transaction() as transaction:
        assert await transaction.channel_settings.get(replace(CHANNEL, workspace="")) == QUIET
        assert await transaction.channel_settings.get(OTHER) == ChannelSettings()


async def test_the_channels_in_which_people_adopt_alerts_are_known(store: Store) -> None:
    shape = Choice("4f2a", "Bell", is_alert=True)
    async with store.transaction() as transaction:
        settings = transaction.channel_settings
        await settings.save(OTHER, ChannelSettings(adoption=Adoption(choices=(shape,))))
        await settings.save(replace(OTHER, channel="C0NO"), ChannelSettings(adoption=Adoption(is_on=False)))
        await settings.save(CHANNEL, ChannelSettings(adoption=Adoption(is_on=True)))
    async with store.transaction() as transaction:
        assert {*await transaction.channel_settings.adopting()} == {OTHER, replace(CHANNEL, workspace="")}


async def test_what_is_held_waits_until_it_is_told(store: Store) -> None:
    async with store.transaction() as transaction:
        for incident, place in (("i2", CHANNEL), ("i1", CHANNEL), ("i1", OTHER), ("i2", CHANNEL)):
            await transaction.held_incidents.hold(incident, place, NIGHT)
    async with store.transaction() as transaction:
        waiting = await transaction.held_incidents.waiting()
        expected = [("i1", OTHER), ("i1", CHANNEL), ("i2", CHANNEL)]
        assert waiting == [HeldIncident(incident, place, NIGHT) for incident, place in expected]
        await transaction.held_incidents.mark_reported("i1", CHANNEL)
        assert await transaction.held_incidents.waiting() == [waiting[0], waiting[2]]
        assert await transaction.held_incidents.places("i1") == {OTHER, CHANNEL}


async def test_what_was_told_can_be_held_again(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.held_incidents.hold("i1", CHANNEL, NIGHT)
        await transaction.held_incidents.hold("i1", CHANNEL, LATER)
        assert await transaction.held_incidents.waiting() == [HeldIncident("i1", CHANNEL, NIGHT)]
        await transaction.held_incidents.mark_reported("i1", CHANNEL)
        await transaction.held_incidents.hold("i1", CHANNEL, LATER)
        assert await transaction.held_incidents.waiting() == [HeldIncident("i1", CHANNEL, LATER)]


async def test_what_is_released_is_held_no_longer(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.held_incidents.hold("i1", CHANNEL, NIGHT)
        await transaction.held_incidents.release("i1", CHANNEL)
        await transaction.held_incidents.release("unknown", CHANNEL)
        await transaction.held_incidents.mark_reported("unknown", CHANNEL)
        assert await transaction.held_incidents.waiting() == []
        assert await transaction.held_incidents.places("i1") == frozenset()


async def test_what_a_storms_summary_lists_is_not_reported_in_the_morning(store: Store) -> None:
    async with store.transaction() as transaction:
        held = transaction.held_incidents
        await held.hold("i2", CHANNEL, NIGHT, "storm 1")
        await held.hold("i1", CHANNEL, LATER, "storm 1")
        await held.hold("i1", OTHER, LATER, "storm 2")
        await held.hold("i3", CHANNEL, LATER)
    async with store.transaction() as transaction:
        held = transaction.held_incidents
        first, second = HeldIncident("i2", CHANNEL, NIGHT, "storm 1"), HeldIncident("i1", CHANNEL, LATER, "storm 1")
        assert await held.listed("storm 1") == [first, second]
        assert await held.listing("i2", replace(CHANNEL, workspace="")) == first
        assert await held.listing("i3", CHANNEL) is None
        assert await held.latest("i2", CHANNEL) == first
        assert await held.latest("i3", replace(CHANNEL, workspace="")) == second
        assert await held.latest("i3", Place(Platform.SLACK, "C0NONE")) is None
        assert await held.storms(NIGHT) == {"storm 1": CHANNEL, "storm 2": OTHER}
        assert await held.waiting() == [HeldIncident("i3", CHANNEL, LATER)]
        await held.release("i1", CHANNEL)
        assert await held.listed("storm 1") == [first]
        assert await held.storms(LATER) == {"storm 2": OTHER}


async def test_a_storm_lists_the_open_before_the_ended_and_the_worst_first_however_many_there_are(store: Store) -> None:
    severities = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
    async with store.transaction() as transaction:
        for number in range(12):
            ended = {"state": IncidentState.RESOLVED, "resolved_at": LATER} if number % 2 else {}
            severity = severities[number // 4]
            stored = incident(id=f"i{number:02}", group_key=f"g{number}", severity=severity, **ended)
            await transaction.incidents.save(stored)
            await transaction.held_incidents.hold(stored.id, CHANNEL, NIGHT, "storm")
    async with store.transaction() as transaction:
        listed = [int(each.incident_id[1:]) for each in await transaction.held_incidents.listed("storm")]
    assert listed == [8, 10, 4, 6, 0, 2, 9, 11, 5, 7, 1, 3]
