from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from core.conversation import MessageReference, Platform
from core.errors import ChatUnavailable, PlumblineError
from core.incident import Incident, Stage
from core.messages import IncidentDetails, IncidentMessage, Message
from handlers.post_message import Poster
from handlers.present_incident import present_details, present_incident
from handlers.update_incident import update_incident
from tests.fakes.messages import alert, explained_incident
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore

DONE = explained_incident(id="i1", revision=1, message=None)
RAW = replace(DONE, owner=None, explanation=None, stage=Stage.TRIAGING)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = RAW
    return store


@pytest.fixture
def chat() -> RecordingMessenger:
    return RecordingMessenger()


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform(RAW.place.platform): chat})


async def change(store: InMemoryStore, **fields: object) -> Incident:
    return await update_incident("i1", lambda latest: replace(latest, **fields), store)


def shown(chat: RecordingMessenger) -> Incident:
    """The incident as the one message shows it."""
    (message,) = chat.standing.values()
    assert isinstance(message, IncidentMessage)
    return message.incident


async def test_an_incident_is_posted_and_knows_its_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster)
    assert shown(chat) == RAW
    assert store.incidents.by_id["i1"].message in chat.standing


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": DONE.owner, "stage": Stage.EXPLAINING},
        {"explanation": DONE.explanation},
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
    await present_incident("i1", store=store, poster=poster)
    await change(store, **fields)
    await present_incident("i1", store=store, poster=poster)
    assert len(chat.posted) == len(chat.edited) == 1
    assert all(getattr(shown(chat), name) == value for name, value in fields.items())


async def test_what_nobody_can_see_makes_no_edit(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster)
    await change(store, updated_at=RAW.updated_at.replace(year=2030))
    await present_incident("i1", store=store, poster=poster)
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
    poster = Poster(store, {Platform(RAW.place.platform): chat})
    await present_incident("i1", store=store, poster=poster)
    await change(store, taken_by="Ada")
    async with asyncio.TaskGroup() as group:
        group.create_task(present_incident("i1", store=store, poster=poster))
        await chat.editing.wait()
        await change(store, taken_by="Bo")
        group.create_task(present_incident("i1", store=store, poster=poster))
        await asyncio.sleep(0)
        chat.let_go.set()
    assert shown(chat).taken_by == "Bo"


@pytest.mark.parametrize("trouble", Trouble)
async def test_whatever_happens_to_a_presentation_there_is_one_message_in_the_end(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, trouble: Trouble
) -> None:
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await present_incident("i1", store=store, poster=poster)
    await change(store, taken_by="Ada")
    await present_incident("i1", store=store, poster=poster)
    await present_incident("i1", store=store, poster=poster)
    assert shown(chat).taken_by == "Ada"


async def test_the_incident_follows_a_message_that_was_deleted_and_posted_anew(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster)
    chat.standing.clear()
    await change(store, taken_by="Ada")
    await present_incident("i1", store=store, poster=poster)
    assert list(chat.standing) == [store.incidents.by_id["i1"].message]


async def test_details_are_posted_once_into_the_thread_of_the_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster)
    for _ in range(2):
        await present_details("i1", store=store, poster=poster)
    incident = store.incidents.by_id["i1"]
    assert incident.message is not None
    thread = replace(incident.message.place, thread=incident.message.message_id)
    assert chat.posted[1:] == [(thread, IncidentDetails(incident))]


async def test_details_need_a_message_to_stand_under(store: InMemoryStore, poster: Poster) -> None:
    with pytest.raises(PlumblineError, match="Incident i1 has no message yet"):
        await present_details("i1", store=store, poster=poster)


async def test_an_incident_that_does_not_exist_is_not_presented(store: InMemoryStore, poster: Poster) -> None:
    with pytest.raises(PlumblineError, match="Incident i2 does not exist"):
        await present_incident("i2", store=store, poster=poster)
