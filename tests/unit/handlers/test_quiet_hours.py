from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from core.model.alert import Severity
from core.model.badge import Badge, Strength
from core.model.conversation import Audience, MessageReference, Person, Place, Platform, Question
from core.model.errors import ChatUnavailable, PlumblineError, QuietNow, Undeliverable
from core.model.findings import PageJudgement
from core.model.incident import Incident, IncidentState
from core.model.messages import IncidentDetails, IncidentMessage, Message, Notice
from core.model.silences import ChannelSettings, QuietHours
from handlers.common.post_message import Poster
from handlers.incidents.hold_incident import (
    SUMMARY,
    end_quiet_hours,
    is_anything_held,
    wait_for_morning,
)
from handlers.incidents.post_handover import OUTSIDERS
from handlers.incidents.present_incident import present_details, present_incident
from handlers.questions.run_command import set_quiet_hours, show_settings
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, with_fields

CHANNEL = Place(Platform.SLACK, "C0INC")
NIGHT, MORNING = datetime(2026, 3, 14, 23, tzinfo=UTC), datetime(2026, 3, 15, 7, 1, tzinfo=UTC)
WARNING = explained_incident(id="i1", revision=1, message=None, severity=Severity.WARNING, place=CHANNEL)
QUIET = ChannelSettings(QuietHours(time(22), time(7)))


class Company:
    """A channel that is quiet from ten to seven, at night."""

    def __init__(self) -> None:
        self.store, self.chat, self.clock = InMemoryStore(), RecordingMessenger(), FakeClock(NIGHT)
        self.poster = Poster(self.store, {Platform.SLACK: self.chat})
        self.done: set[str] = set()  # keys of tasks
        self.store.incidents.by_id["i1"] = WARNING
        self.store.channel_settings.by_channel[Platform.SLACK, CHANNEL.channel] = QUIET

    async def present(self, incident_id: str = "i1") -> None:
        await present_incident(incident_id, some_ports(store=self.store, poster=self.poster, clock=self.clock))
        await present_details(incident_id, some_ports(store=self.store, poster=self.poster))

    async def look_for_morning(self) -> None:
        await end_quiet_hours(some_ports(store=self.store, poster=self.poster, clock=self.clock))
        for task in [task for task in self.store.tasks.added.values() if task.key not in self.done]:
            self.done.add(task.key)
            await self.present(task.subject)

    async def is_held(self) -> bool:
        async with self.store.transaction() as transaction:
            return CHANNEL in await transaction.held_incidents.places("i1")

    def change(self, **fields: object) -> None:
        self.store.incidents.by_id["i1"] = with_fields(self.store.incidents.by_id["i1"], **fields)

    @property
    def said(self) -> list[Message]:
        return list(self.chat.standing.values())

    @property
    def kinds(self) -> list[type]:
        return [type(message) for message in self.said]


@pytest.fixture
def company() -> Company:
    return Company()


def question(text: str) -> Question:
    person = Person(Platform.SLACK, "U1", "Ines")
    return Question("q1", text, person, replace(CHANNEL, thread="17"), Audience(), NIGHT)


async def test_what_can_wait_is_told_in_the_morning_with_a_summary(company: Company) -> None:
    await company.present()
    assert company.said == []
    assert await company.is_held()
    await company.look_for_morning()
    assert company.said == []
    company.clock = FakeClock(MORNING)
    await company.look_for_morning()
    assert company.kinds == [Notice, IncidentMessage, IncidentDetails]
    (summary, *_) = company.said
    assert isinstance(summary, Notice)
    assert summary.text.startswith(SUMMARY)
    assert WARNING.title in summary.text
    assert not await is_anything_held(store=company.store)
    await company.look_for_morning()
    assert len(company.said) == 3


async def test_what_was_over_before_the_morning_is_named_in_the_summary_alone(company: Company) -> None:
    await company.present()
    company.change(state=IncidentState.RESOLVED, resolved_at=datetime(2026, 3, 14, 23, 30, tzinfo=UTC))
    await company.present()
    company.clock = FakeClock(MORNING)
    await company.present()
    await company.look_for_morning()
    await company.present()
    assert company.kinds == [Notice]
    assert "over: " in str(company.said[0])


async def test_what_was_over_and_fires_again_is_posted(company: Company) -> None:
    await company.present()
    company.change(state=IncidentState.RESOLVED, resolved_at=NIGHT)
    company.clock = FakeClock(MORNING)
    await company.look_for_morning()
    company.change(state=IncidentState.OPEN, resolved_at=None)
    await company.present()
    assert company.kinds[:2] == [Notice, IncidentMessage]


async def test_what_is_loud_enough_is_told_at_once(company: Company) -> None:
    company.change(severity=Severity.CRITICAL)
    await company.present()
    assert company.kinds == [IncidentMessage, IncidentDetails]
    assert not await company.is_held()


async def test_what_becomes_loud_at_night_is_told_then(company: Company) -> None:
    await company.present()
    company.change(severity=Severity.CRITICAL)
    await company.present()
    assert IncidentMessage in company.kinds


async def test_what_stood_there_before_is_kept_up_to_date_without_a_sound(company: Company) -> None:
    company.clock = FakeClock(MORNING)
    await company.present()
    company.clock = FakeClock(NIGHT)
    company.change(alert_count=7)
    company.change(reopened_count=1)
    await company.present()
    assert company.kinds == [IncidentMessage, IncidentDetails]
    message = company.said[0]
    assert isinstance(message, IncidentMessage)
    assert message.incident.alert_count == 7
    company.clock = FakeClock(MORNING)
    await company.look_for_morning()
    assert company.kinds == [IncidentMessage, IncidentDetails, Notice, Notice]  # the summary, and that it fires again


async def test_quiet_hours_of_one_channel_hold_nothing_back_from_another(company: Company) -> None:
    company.change(also_in=(Place(Platform.SLACK, "C0OPS"),))
    await company.present()
    assert company.kinds == [IncidentMessage, IncidentDetails]
    assert {reference.place.channel for reference in company.chat.standing} == {"C0OPS"}


async def test_a_process_that_dies_over_the_summary_says_it_once(company: Company) -> None:
    await company.present()
    company.clock = FakeClock(MORNING)
    before = dict(company.store.held_incidents.held)
    await end_quiet_hours(some_ports(store=company.store, poster=company.poster, clock=company.clock))
    company.store.held_incidents.held = before
    company.change(revision=2, alert_count=9)
    await company.look_for_morning()
    assert [kind for kind in company.kinds if kind is Notice] == [Notice]


async def test_what_is_switched_off_is_told_at_once(company: Company) -> None:
    await company.present()
    await set_quiet_hours(question("off"), some_ports(store=company.store, poster=company.poster))
    await company.look_for_morning()
    assert IncidentMessage in company.kinds


async def test_what_concerns_nobody_at_night_waits_for_the_morning(company: Company) -> None:
    with pytest.raises(QuietNow) as raised:
        await wait_for_morning(CHANNEL, some_ports(store=company.store, clock=company.clock))
    assert raised.value.retry_after == 8 * 3600
    company.clock = FakeClock(MORNING)
    await wait_for_morning(CHANNEL, some_ports(store=company.store, clock=company.clock))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("22:00-07:00 Europe/Berlin", "every day from 22:00 to 07:00 Europe/Berlin"),
        ("off", "Quiet hours: none"),
        ("99", "don’t understand"),
        ("", "Settings of this channel"),
    ],
)
async def test_a_channel_is_told_what_was_set_and_by_whom(company: Company, text: str, told: str) -> None:
    await set_quiet_hours(question(text), some_ports(store=company.store, poster=company.poster))
    (notice,) = company.said
    assert isinstance(notice, Notice)
    assert told in notice.text
    assert ("Ines changed" in notice.text) is (text not in ("", "99"))


async def test_whoever_does_not_belong_to_the_workspace_changes_nothing(company: Company) -> None:
    guest = replace(question("off"), audience=Audience(frozenset({"channel:incidents"})))
    await set_quiet_hours(guest, some_ports(store=company.store, poster=company.poster))
    assert company.said == [Notice(OUTSIDERS)]
    assert company.store.channel_settings.by_channel[Platform.SLACK, CHANNEL.channel] == QUIET


async def test_settings_are_shown_with_how_to_change_them(company: Company) -> None:
    await show_settings(question("settings"), some_ports(store=company.store, poster=company.poster))
    assert "22:00 to 07:00 UTC" in str(company.said)
    assert "post only critical incidents" in str(company.said)
    assert "quiet off" in str(company.said)


def test_the_incident_of_these_tests_can_wait() -> None:
    assert isinstance(WARNING, Incident)
    assert WARNING.state is IncidentState.OPEN


@pytest.mark.parametrize("error", [Undeliverable("It is archived."), ChatUnavailable("It is down."), None])
async def test_a_channel_that_cannot_be_told_in_the_morning_keeps_no_other_waiting(
    company: Company, error: PlumblineError | None
) -> None:
    class Refusing(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            assert error is not None
            raise error

    teams = RecordingMessenger()
    known = {Platform.SLACK: Refusing()} if error is not None else {}
    poster = Poster(company.store, {Platform.TEAMS: teams} | known)
    async with company.store.transaction() as transaction:
        for place in (CHANNEL, Place(Platform.TEAMS, "19:incidents")):
            await transaction.held_incidents.hold("i1", place, NIGHT)
    company.clock.advance((MORNING - NIGHT).total_seconds())
    is_down = isinstance(error, ChatUnavailable)
    with pytest.raises(ChatUnavailable) if is_down else nullcontext():
        await end_quiet_hours(some_ports(store=company.store, poster=poster, clock=company.clock))
    assert len(teams.posted) == 1
    assert [task.subject for task in company.store.tasks.added.values()] == ["i1"]
    async with company.store.transaction() as transaction:
        assert bool(await transaction.held_incidents.waiting()) is is_down


# --- held back, because nobody seemed to be needed ---------------------------------------------------------------------


def held_back(company: Company, **fields: object) -> None:
    page = PageJudgement(
        Badge(Strength.WEAK, 0.01), "p", (), Severity.WARNING, held_until=NIGHT + timedelta(minutes=10)
    )
    company.change(page=page, opened_at=NIGHT, **fields)


OVER = {"state": IncidentState.RESOLVED, "resolved_at": NIGHT + timedelta(minutes=5)}


@pytest.mark.parametrize("settings", [QUIET, ChannelSettings()])
async def test_what_was_held_back_and_ended_is_told_the_next_morning_and_not_before(
    company: Company, settings: ChannelSettings
) -> None:
    company.store.channel_settings.by_channel[Platform.SLACK, CHANNEL.channel] = settings
    held_back(company)
    await company.present()
    company.change(**OVER)
    await company.present()
    for hours in (1, 5):
        company.clock = FakeClock(NIGHT + timedelta(hours=hours))
        await company.present()
        await company.look_for_morning()
    assert company.said == []
    company.clock = FakeClock(NIGHT + timedelta(hours=9, minutes=1))
    await company.look_for_morning()
    await company.look_for_morning()
    await company.present()
    assert company.kinds == [Notice]
    assert WARNING.title in str(company.said[0])
    assert "held back because it seemed to need nobody" in str(company.said[0])


async def test_what_was_held_back_during_the_day_is_told_the_next_morning(company: Company) -> None:
    company.store.channel_settings.by_channel.clear()
    noon = datetime(2026, 3, 14, 12, tzinfo=UTC)
    company.clock = FakeClock(noon)
    page = PageJudgement(Badge(Strength.WEAK, 0.01), "p", (), Severity.WARNING, held_until=noon + timedelta(minutes=10))
    company.change(page=page, opened_at=noon)
    await company.present()
    company.change(state=IncidentState.RESOLVED, resolved_at=noon + timedelta(minutes=5))
    company.clock = FakeClock(noon + timedelta(hours=11))
    await company.look_for_morning()
    assert company.said == []
    company.clock = FakeClock(noon + timedelta(hours=20, minutes=1))
    await company.look_for_morning()
    assert company.kinds == [Notice]


async def test_what_outlasts_its_holding_is_posted_and_not_told_again_in_the_morning(company: Company) -> None:
    company.store.channel_settings.by_channel.clear()
    held_back(company)
    await company.present()
    assert company.said == []
    company.clock = FakeClock(NIGHT + timedelta(minutes=10))
    await company.present()
    assert company.kinds[0] is IncidentMessage
    assert not await is_anything_held(store=company.store)
    company.clock = FakeClock(MORNING + timedelta(hours=2))
    await company.look_for_morning()
    assert Notice not in company.kinds


async def test_what_becomes_critical_while_it_is_held_back_is_posted_at_once(company: Company) -> None:
    company.store.channel_settings.by_channel.clear()
    held_back(company)
    await company.present()
    company.change(severity=Severity.CRITICAL)
    await company.present()
    assert company.kinds[0] is IncidentMessage
    assert not await is_anything_held(store=company.store)
