from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.model.audit import Act
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import (
    ChatBusy,
    ChatUnavailable,
    ConfigurationError,
    Conflict,
    MessageNotFound,
    Undeliverable,
)
from core.model.messages import IncidentDetails, IncidentMessage, Message, Notice
from handlers.common.post_message import Poster
from handlers.questions.redeliver import ask_to_redeliver, drop_dead_letter, redeliver
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

PLACE = Place(Platform.CONSOLE, "incidents")
ONE, TWO = Notice("one"), Notice("two")


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform.CONSOLE: chat})


async def test_an_intent_is_posted_once(poster: Poster, chat: RecordingMessenger) -> None:
    first = await poster.post_once("intent", PLACE, ONE)
    assert await poster.post_once("intent", PLACE, TWO) == first
    assert chat.posted == [(PLACE, ONE)]


async def test_two_intents_are_two_messages(poster: Poster, chat: RecordingMessenger) -> None:
    assert await poster.post_once("one", PLACE, ONE) != await poster.post_once("two", PLACE, ONE)
    assert len(chat.posted) == 2


@pytest.mark.parametrize("trouble", Trouble)
async def test_whatever_happens_to_a_post_it_stands_there_once_in_the_end(
    poster: Poster, chat: RecordingMessenger, trouble: Trouble
) -> None:
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await poster.post_once("intent", PLACE, ONE)
    reference = await poster.post_once("intent", PLACE, ONE)
    assert chat.standing == {reference: ONE}


async def test_the_wait_that_a_chat_asks_for_reaches_whoever_tries_again(
    poster: Poster, chat: RecordingMessenger
) -> None:
    chat.trouble.append(Trouble.DOWN)
    chat.retry_after = 17.0
    with pytest.raises(ChatUnavailable) as raised:
        await poster.post_once("intent", PLACE, ONE)
    assert raised.value.retry_after == 17.0


async def test_a_platform_that_cannot_find_its_posts_is_asked_again_rather_than_not_at_all(
    store: InMemoryStore,
) -> None:
    chat = RecordingMessenger(forgetful=True)
    poster = Poster(store, {Platform.CONSOLE: chat})
    chat.trouble.append(Trouble.CRASH_AFTER)
    with pytest.raises(Crash):
        await poster.post_once("intent", PLACE, ONE)
    await poster.post_once("intent", PLACE, ONE)
    assert len(chat.posted) == 2, "twice is better than never"


async def test_a_message_is_edited_only_if_it_shows_another_version(poster: Poster, chat: RecordingMessenger) -> None:
    reference = await poster.post_or_edit("intent", PLACE, ONE, "v1")
    assert await poster.post_or_edit("intent", PLACE, TWO, "v1") == reference
    assert chat.edited == []
    assert await poster.post_or_edit("intent", PLACE, TWO, "v2") == reference
    assert chat.edited == [(reference, TWO)]


@pytest.mark.parametrize("trouble", Trouble)
async def test_whatever_happens_to_an_edit_it_is_shown_in_the_end(
    poster: Poster, chat: RecordingMessenger, trouble: Trouble
) -> None:
    reference = await poster.post_or_edit("intent", PLACE, ONE, "v1")
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await poster.post_or_edit("intent", PLACE, TWO, "v2")
    await poster.post_or_edit("intent", PLACE, TWO, "v2")
    assert chat.standing == {reference: TWO}


async def test_a_message_that_somebody_deleted_is_posted_anew(poster: Poster, chat: RecordingMessenger) -> None:
    gone = await poster.post_or_edit("intent", PLACE, ONE, "v1")
    del chat.standing[gone]
    reference = await poster.post_or_edit("intent", PLACE, TWO, "v2")
    assert reference != gone
    assert chat.standing == {reference: TWO}
    assert await poster.post_or_edit("intent", PLACE, TWO, "v2") == reference


async def test_a_reply_whose_thread_is_gone_is_an_error(store: InMemoryStore) -> None:
    class Gone(RecordingMessenger):
        async def post(self, place: Place, message: object, intent: str) -> MessageReference:
            raise MessageNotFound("The thread is gone.")

    with pytest.raises(MessageNotFound):
        await Poster(store, {Platform.CONSOLE: Gone()}).post_once("intent", replace(PLACE, thread="1"), ONE)
    assert store.dead_letters.by_intent == {}, "whoever deleted the thread wants nothing in it"


async def test_a_platform_that_is_off_is_a_mistake_in_the_configuration(store: InMemoryStore) -> None:
    with pytest.raises(ConfigurationError, match="console, which is not configured"):
        await Poster(store, {}).post_once("intent", PLACE, ONE)
    assert store.posts.by_intent == {}


class Refusing(RecordingMessenger):
    """A chat that will never take a message, as one whose channel is archived."""

    refuses = True

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        if self.refuses:
            raise Undeliverable("The channel is archived.")
        return await super().post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        if self.refuses:
            raise Undeliverable("The channel is archived.")
        await super().edit(reference, message)


async def edit_refused(store: InMemoryStore) -> tuple[Refusing, Poster]:
    """A message that stands in a chat that has just refused to edit it."""
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    chat.refuses = False
    await poster.post_once("intent", PLACE, ONE, "1")
    chat.refuses = True
    with pytest.raises(Undeliverable):
        await poster.post_or_edit("intent", PLACE, TWO, "2")
    return chat, poster


async def test_what_a_chat_will_never_take_is_a_dead_letter_and_is_not_tried_again(store: InMemoryStore) -> None:
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    with pytest.raises(Undeliverable):
        await poster.post_once("intent", PLACE, ONE)
    letter = store.dead_letters.by_intent["intent"]
    assert (letter.place, letter.message, letter.reason) == (PLACE, ONE, "The channel is archived.")
    chat.refuses = False
    with pytest.raises(Undeliverable):
        await poster.post_once("intent", PLACE, ONE)
    assert chat.posted == []


async def test_a_dead_letter_is_posted_once_an_operator_wants_it_and_only_once(store: InMemoryStore) -> None:
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    with pytest.raises(Undeliverable):
        await poster.post_once("intent", PLACE, ONE)
    assert await ask_to_redeliver("intent", store=store)
    with pytest.raises(Undeliverable):
        await redeliver("intent", some_ports(store=store, poster=poster))
    assert store.dead_letters.by_intent.keys() == {"intent"}, "it was refused again"
    chat.refuses = False
    for _ in range(2):
        await redeliver("intent", some_ports(store=store, poster=poster))
    assert (chat.posted, store.dead_letters.by_intent) == ([(PLACE, ONE)], {})
    assert not await ask_to_redeliver("intent", store=store)


@pytest.mark.parametrize(
    ("trouble", "raised"),
    [
        (Trouble.DOWN, ChatUnavailable),
        (Trouble.ANSWER_LOST, ChatUnavailable),
        (Trouble.CRASH_BEFORE, Crash),
        (Trouble.CRASH_AFTER, Crash),
    ],
)
async def test_a_dead_letter_outlives_a_chat_that_is_down_and_a_process_that_is_killed_while_it_is_tried_again(
    store: InMemoryStore, trouble: Trouble, raised: type[BaseException]
) -> None:
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    with pytest.raises(Undeliverable):
        await poster.post_once("intent", PLACE, ONE)
    chat.refuses = False
    chat.trouble.append(trouble)
    with pytest.raises(raised):
        await redeliver("intent", some_ports(store=store, poster=poster))
    assert store.dead_letters.by_intent["intent"].message == ONE
    await redeliver("intent", some_ports(store=store, poster=poster))
    assert (list(chat.standing.values()), store.dead_letters.by_intent) == ([ONE], {})


async def test_an_edit_that_was_a_dead_letter_is_made_once_an_operator_wants_it(store: InMemoryStore) -> None:
    chat, poster = await edit_refused(store)
    chat.refuses = False
    await redeliver("intent", some_ports(store=store, poster=poster))
    assert (list(chat.standing.values()), store.dead_letters.by_intent) == ([TWO], {})


async def test_of_a_dead_incident_what_is_known_by_now_is_shown_also_by_a_process_that_comes_after_a_kill(
    store: InMemoryStore,
) -> None:
    poster = Poster(store, {Platform.CONSOLE: Refusing()})
    with pytest.raises(Undeliverable):
        await poster.post_once("incident:i1", PLACE, IncidentMessage(explained_incident(id="i1")))
    store.incidents.by_id["i1"] = explained_incident(id="i1")
    store.conflicts = 1
    with pytest.raises(Conflict):  # nothing of it is written
        await redeliver("incident:i1", some_ports(store=store, poster=poster))
    assert (store.dead_letters.by_intent.keys(), store.tasks.added) == ({"incident:i1"}, {})
    for _ in range(2):
        await redeliver("incident:i1", some_ports(store=store, poster=poster))
    assert store.dead_letters.by_intent == {}
    assert [(task.workflow, task.subject) for task in store.tasks.added.values()] == [("present_held", "i1")]


async def test_a_dead_letter_of_an_incident_that_was_deleted_meanwhile_is_gone_too(store: InMemoryStore) -> None:
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    for intent, message in (
        ("incident:i1", IncidentMessage(explained_incident(id="i1"))),
        ("incident:i1@console:2", IncidentMessage(explained_incident(id="i1"))),
        ("details:i1", IncidentDetails(explained_incident(id="i1"))),
    ):
        with pytest.raises(Undeliverable):
            await poster.post_once(intent, PLACE, message)
        await redeliver(intent, some_ports(store=store, poster=poster))
    assert (chat.posted, store.dead_letters.by_intent, store.tasks.added) == ([], {}, {})


async def test_what_somebody_asked_to_be_looked_into_is_posted_as_it_was_kept(store: InMemoryStore) -> None:
    """A text that was pasted is no incident of the store."""
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    found = IncidentMessage(explained_incident(id="q1"))
    with pytest.raises(Undeliverable):
        await poster.post_once("investigation:q1", PLACE, found)
    chat.refuses = False
    await redeliver("investigation:q1", some_ports(store=store, poster=poster))
    assert (chat.posted, store.dead_letters.by_intent) == ([(PLACE, found)], {})


async def test_a_dead_letter_that_is_given_up_is_not_tried_again_and_says_so_in_the_audit_log(
    store: InMemoryStore,
) -> None:
    chat = Refusing()
    poster = Poster(store, {Platform.CONSOLE: chat})
    with pytest.raises(Undeliverable):
        await poster.post_once("intent", PLACE, ONE)
    assert await ask_to_redeliver("intent", store=store)
    chat.refuses = False
    assert await drop_dead_letter("intent", datetime(2026, 3, 14, tzinfo=UTC), store=store)
    await redeliver("intent", some_ports(store=store, poster=poster))
    assert (chat.posted, store.dead_letters.by_intent) == ([], {})
    assert not await drop_dead_letter("intent", datetime(2026, 3, 14, tzinfo=UTC), store=store)
    assert [(each.entry.act, each.entry.subject) for each in store.audit.entries] == [(Act.DROPPED, "intent")]


async def test_an_edit_that_a_chat_will_never_take_is_a_dead_letter(store: InMemoryStore) -> None:
    await edit_refused(store)
    assert store.dead_letters.by_intent["intent"].message == TWO


async def test_a_chat_that_asks_to_wait_has_taken_nothing_and_is_not_searched(store: InMemoryStore) -> None:
    class Busy(RecordingMessenger):
        searched = 0

        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            raise ChatBusy("Slow down.", 30)

        async def find(self, place: Place, intent: str) -> MessageReference | None:
            self.searched += 1
            return None

    chat = Busy()
    for _ in range(3):
        with pytest.raises(ChatBusy):
            await Poster(store, {Platform.CONSOLE: chat}).post_once("intent", PLACE, ONE)
    assert chat.searched == 0
