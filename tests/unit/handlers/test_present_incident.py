from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from core.model.badge import Badge, Policy, Strength
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError, Undeliverable
from core.model.incident import Hop, Incident, IncidentState, Recurrence, Stage
from core.model.messages import IncidentDetails, IncidentMessage, Message, Notice, OwnerPing, is_lifted
from core.model.team import Team
from handlers.common.post_message import Poster
from handlers.common.stored_incident import update_incident
from handlers.incidents.present_incident import (
    FIRES_AGAIN,
    present_details,
    present_incident,
    update_chats,
    update_details,
)
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import alert, explained_incident, explanation, owner, with_fields

CLOCK = FakeClock()
DONE = explained_incident(id="i1", revision=1, message=None)
RAW = replace(DONE.with_findings(owner=None, explanation=None), stage=Stage.TRIAGING)
SENT_ON = Hop("payments", "", "Ada", "", RAW.opened_at)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = RAW
    return store


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform(RAW.placement.place.platform): chat})


async def change(store: InMemoryStore, **fields: object) -> Incident:
    return await update_incident("i1", lambda latest: with_fields(latest, **fields), store)


def shown(chat: RecordingMessenger) -> Incident:
    """The incident as the one message shows it."""
    (message,) = chat.standing.values()
    assert isinstance(message, IncidentMessage)
    return message.incident


async def test_an_incident_stands_in_several_chats_at_once_and_each_is_kept_up_to_date(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    teams = RecordingMessenger()
    both = Poster(store, {Platform(RAW.placement.place.platform): chat, Platform.TEAMS: teams})
    await change(store, also_in=(Place(Platform.TEAMS, "19:incidents"),))
    await present_incident("i1", some_ports(store=store, poster=both, clock=CLOCK))
    done = await change(store, owner=DONE.findings.owner, explanation=DONE.findings.explanation, stage=Stage.DONE)
    for _ in range(2):
        await present_incident("i1", some_ports(store=store, poster=both, clock=CLOCK))
        await present_details("i1", some_ports(store=store, poster=both))
    for messenger in (chat, teams):
        message, details = messenger.standing.values()
        assert isinstance(message, IncidentMessage)
        assert isinstance(details, IncidentDetails)
        assert (message.incident.findings.owner, message.incident.findings.explanation) == (
            done.findings.owner,
            done.findings.explanation,
        )
    (root, reply) = teams.standing
    assert (root.place.channel, reply.place.thread) == ("19:incidents", root.message_id)


async def test_an_incident_that_fires_again_is_told_in_its_thread_once_for_each_time(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    for times in (1, 1, 2):
        await change(store, reopened_count=times)
        await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    root, *notices = chat.standing
    assert [notice.place.thread for notice in notices] == [root.message_id] * 2
    assert [chat.standing[notice] for notice in notices] == [Notice(FIRES_AGAIN)] * 2


async def test_an_incident_is_posted_and_knows_its_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    assert shown(chat) == RAW
    assert store.incidents.by_id["i1"].placement.message in chat.standing


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": DONE.findings.owner, "stage": Stage.EXPLAINING},
        {"explanation": DONE.findings.explanation},
        {"taken_by": "Ada"},
        {"alert_count": 12},
        {"delivery_count": 12},
        {"alerts": (alert(1), alert(2))},
        {"also_firing": ("f1",)},
    ],
)
async def test_what_has_changed_is_shown_in_the_same_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, fields: dict[str, object]
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    await change(store, **fields)
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    assert len(chat.posted) == len(chat.edited) == 1
    assert with_fields(shown(chat), **fields) == shown(chat)


async def test_what_nobody_can_see_makes_no_edit(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    await change(store, updated_at=RAW.updated_at.replace(year=2030))
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    assert chat.edited == []


async def test_of_two_presentations_at_once_the_later_state_stands_there_in_the_end(store: InMemoryStore) -> None:
    class Slow(RecordingMessenger):
        """Takes the first edit only when it is let go."""

        def __init__(self) -> None:
            super().__init__()
            self.editing, self.let_go = asyncio.Event(), asyncio.Event()

        async def edit(self, reference: MessageReference, message: Message) -> None:
            self.editing.set()
            await self.let_go.wait()
            await super().edit(reference, message)

    chat = Slow()
    poster = Poster(store, {Platform(RAW.placement.place.platform): chat})
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    await change(store, taken_by="Ada")
    async with asyncio.TaskGroup() as group:
        group.create_task(present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK)))
        await chat.editing.wait()
        await change(store, taken_by="Bo")
        group.create_task(present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK)))
        await asyncio.sleep(0)
        chat.let_go.set()
    assert shown(chat).taken_by == "Bo"


@pytest.mark.parametrize("trouble", Trouble)
async def test_whatever_happens_to_a_presentation_there_is_one_message_in_the_end(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, trouble: Trouble
) -> None:
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    await change(store, taken_by="Ada")
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    assert shown(chat).taken_by == "Ada"


async def test_the_incident_follows_a_message_that_was_deleted_and_posted_anew(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    chat.standing.clear()
    await change(store, taken_by="Ada")
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    assert list(chat.standing) == [store.incidents.by_id["i1"].placement.message]


async def test_details_are_posted_once_into_the_thread_of_the_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    for _ in range(2):
        await present_details("i1", some_ports(store=store, poster=poster))
    incident = store.incidents.by_id["i1"]
    assert incident.placement.message is not None
    thread = replace(incident.placement.message.place, thread=incident.placement.message.message_id)
    assert chat.posted[1:] == [(thread, IncidentDetails(incident))]


async def test_details_that_stand_in_the_thread_follow_an_incident_that_is_sent_on(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK))
    sent_on = (Hop("payments", "", "Ada", "", RAW.opened_at),)
    await change(store, hops=sent_on)
    await update_details(store.incidents.by_id["i1"], some_ports(store=store, poster=poster))
    assert len(chat.posted) == 1, "they are posted when the work is done"
    await present_details("i1", some_ports(store=store, poster=poster))
    await change(store, owner=owner(owner=None, note="Nobody wants it."))
    for _ in range(2):
        await update_details(store.incidents.by_id["i1"], some_ports(store=store, poster=poster))
    assert len(chat.posted) == 2
    assert IncidentDetails(store.incidents.by_id["i1"]) in chat.standing.values()


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"owner": owner(owner=None, note="Nobody wants it.")},
        {"explanation": explanation(first_failing="ledger")},
        {"hops": (SENT_ON, replace(SENT_ON, turned_away="bookings"))},
    ],
    ids=["the owner", "the cause", "a reassignment"],
)
async def test_details_show_what_changed_while_the_owner_was_called(
    store: InMemoryStore, meanwhile: dict[str, object]
) -> None:
    class ChatOfBusyPeople(RecordingMessenger):
        """Somebody changes the incident, and the details follow, while the owner is called."""

        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            if isinstance(message, OwnerPing):
                await change(store, **meanwhile)
                await update_details(store.incidents.by_id["i1"], ports)
            return await super().post(place, message, intent)

    chat = ChatOfBusyPeople()
    poster = Poster(store, {Platform(RAW.placement.place.platform): chat})
    policy, teams = Policy(ping_owner_above=0.1), (Team("payments", "Payments"),)
    ports = some_ports(policy=policy, teams=teams, store=store, poster=poster, clock=CLOCK)
    certain = replace(owner(), badge=Badge(Strength.STRONG, 0.9))
    await change(store, owner=certain, explanation=explanation(), hops=(SENT_ON,), stage=Stage.DONE)
    await present_incident("i1", ports)
    await present_details("i1", ports)
    await update_chats("i1", ports)
    (details,) = [each for each in chat.standing.values() if isinstance(each, IncidentDetails)]
    assert with_fields(details.incident, **meanwhile) == details.incident


async def test_details_need_a_message_to_stand_under(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    """It has none while it is silenced, or while the chat does not take it."""
    await present_details("i1", some_ports(store=store, poster=poster))
    assert chat.posted == []


async def test_an_incident_that_does_not_exist_is_not_presented(store: InMemoryStore, poster: Poster) -> None:
    with pytest.raises(PlumblineError, match="Incident i2 does not exist"):
        await present_incident("i2", some_ports(store=store, poster=poster, clock=CLOCK))


# --- by policy -------------------------------------------------------------------------------------------------------

POLICY = Policy(ask_below=0.4, ping_owner_above=0.8)


@pytest.mark.parametrize(
    ("probabilities", "asked"),
    [((0.3, 0.7), (True, False)), ((0.7, 0.3), (False, True)), ((None, None), (False, False))],
)
async def test_what_has_a_low_badge_is_put_as_a_question(
    store: InMemoryStore,
    poster: Poster,
    chat: RecordingMessenger,
    probabilities: tuple[float | None, float | None],
    asked: tuple[bool, bool],
) -> None:
    owner_probability, cause_probability = probabilities
    said = owner(badge=Badge(Strength.STRONG, owner_probability))
    why = explanation(badge=Badge(Strength.STRONG, cause_probability))
    store.incidents.by_id["i1"] = DONE.with_findings(owner=said, explanation=why)
    await present_incident("i1", some_ports(store=store, poster=poster, clock=CLOCK, policy=POLICY))
    (message,) = chat.standing.values()
    assert isinstance(message, IncidentMessage)
    assert (message.asks_owner, message.asks_cause) == asked


@pytest.mark.parametrize("error", [Undeliverable("The channel is archived."), ChatUnavailable("The chat is down.")])
async def test_a_chat_that_takes_nothing_keeps_no_other_chat_from_being_told(
    store: InMemoryStore, error: PlumblineError
) -> None:
    class Refusing(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            raise error

    teams = RecordingMessenger()
    both = Poster(store, {Platform(RAW.placement.place.platform): Refusing(), Platform.TEAMS: teams})
    await change(store, also_in=(Place(Platform.TEAMS, "19:incidents"),))
    for _ in range(2):
        with pytest.raises(type(error)):
            await update_chats("i1", some_ports(store=store, poster=both, clock=CLOCK))
    assert len(teams.posted) == 1


async def test_a_copy_that_is_refused_keeps_no_other_copy_from_its_details(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    class Archived(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            if place.channel == "19:archived":
                raise Undeliverable("The channel is archived.")
            return await super().post(place, message, intent)

    teams = Archived()
    store.incidents.by_id["i1"] = DONE
    await change(store, also_in=(Place(Platform.TEAMS, "19:archived"), Place(Platform.TEAMS, "19:open")))
    both = some_ports(
        store=store,
        poster=Poster(store, {Platform(RAW.placement.place.platform): chat, Platform.TEAMS: teams}),
        clock=CLOCK,
    )
    for step in (update_chats, present_details):
        with pytest.raises(Undeliverable):
            await step("i1", both)
    assert [type(message) for message in teams.standing.values()] == [IncidentMessage, IncidentDetails]


@pytest.mark.parametrize(("hours", "is_deleted", "is_joined"), [(2, False, True), (2, True, False), (30, False, False)])
async def test_an_alert_that_fires_again_is_shown_in_its_old_thread_within_a_day(
    store: InMemoryStore, hours: float, is_deleted: bool, is_joined: bool
) -> None:
    class Channel(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            if is_deleted and place.thread is not None:
                raise MessageNotFound("thread_not_found")
            return await super().post(place, message, intent)

    chat = Channel()
    poster = Poster(store, {Platform(RAW.placement.place.platform): chat})
    ports = some_ports(store=store, poster=poster, clock=CLOCK)
    await present_incident("i1", ports)
    old = await change(store, state=IncidentState.RESOLVED, resolved_at=RAW.opened_at)
    again = replace(RAW, id="i2", opened_at=RAW.opened_at + timedelta(hours=hours))
    store.incidents.by_id["i2"] = replace(again, recurrence=Recurrence("i1", 2, RAW.started_at))
    for _ in range(2):
        await present_incident("i2", ports)
    first, second = chat.standing
    assert second.place == (first.thread if is_joined else RAW.placement.place)
    message = chat.standing[second]
    assert isinstance(message, IncidentMessage)
    assert is_lifted(message, second.place) == is_joined
    assert message.last is not None
    assert message.last.incident_id == old.id
    assert store.incidents.by_id["i2"].placement.message == second
