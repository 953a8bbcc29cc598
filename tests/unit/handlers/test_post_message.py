from __future__ import annotations

import pytest

from core.conversation import MessageReference, Place, Platform
from core.errors import ChatUnavailable, ConfigurationError, MessageNotFound
from core.messages import Notice
from handlers.post_message import Poster
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore

PLACE = Place(Platform.CONSOLE, "incidents")
ONE, TWO = Notice("one"), Notice("two")


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def chat() -> RecordingMessenger:
    return RecordingMessenger()


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
        await Poster(store, {Platform.CONSOLE: Gone()}).post_once("intent", PLACE, ONE)


async def test_a_platform_that_is_off_is_a_mistake_in_the_configuration(store: InMemoryStore) -> None:
    with pytest.raises(ConfigurationError, match="console, which is not configured"):
        await Poster(store, {}).post_once("intent", PLACE, ONE)
    assert store.posts.by_intent == {}
