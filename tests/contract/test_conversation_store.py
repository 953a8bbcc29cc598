"""The contract of ConversationStore, over the fake and every database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.model.conversation import Speaker, Turn
from core.ports import Store
from tests.contract.records import CHANNEL, MANY, NOW, THREAD


async def test_a_history_holds_the_last_turns_of_its_thread_oldest_first(store: Store) -> None:
    turns = [Turn(Speaker.PERSON if number % 2 else Speaker.PLUMBLINE, f"turn {number}") for number in range(4)]
    async with store.transaction() as transaction:
        for number, turn in enumerate(turns):
            await transaction.conversations.put(f"key {number}", THREAD, turn, NOW)
        await transaction.conversations.put("key 3", THREAD, turns[3], NOW)
        await transaction.conversations.put("other", replace(THREAD, thread="18.1"), turns[0], NOW)
        await transaction.conversations.put("no thread", CHANNEL, turns[0], NOW)
    async with store.transaction() as transaction:
        assert await transaction.conversations.history(THREAD, 3) == tuple(turns[1:])
        assert await transaction.conversations.history(CHANNEL, MANY) == ()
        assert await transaction.conversations.history(replace(THREAD, workspace="T0OTHER"), MANY) == ()


async def test_a_turn_is_found_by_its_key_in_its_channel(store: Store) -> None:
    turn = Turn(Speaker.PERSON, "how?")
    async with store.transaction() as transaction:
        await transaction.conversations.put("key", THREAD, turn, NOW)
        assert await transaction.conversations.get("key", THREAD) == turn
        assert await transaction.conversations.get("key", CHANNEL) == turn
        assert await transaction.conversations.get("key", replace(THREAD, channel="C0ELSE")) is None
        assert await transaction.conversations.get("another key", THREAD) is None


async def test_a_turn_that_is_forgotten_is_gone(store: Store) -> None:
    async with store.transaction() as transaction:
        for key in ("first", "second"):
            await transaction.conversations.put(key, THREAD, Turn(Speaker.PERSON, key), NOW)
    async with store.transaction() as transaction:
        await transaction.conversations.forget("first")
        await transaction.conversations.forget("never said")
    async with store.transaction() as transaction:
        assert [turn.text for turn in await transaction.conversations.history(THREAD, 10)] == ["second"]


async def test_the_latest_conversation_of_a_channel_is_that_in_which_something_was_said_last(store: Store) -> None:
    first, second, elsewhere = (Turn(Speaker.PERSON, text) for text in ("first", "second", "elsewhere"))
    soon = NOW + timedelta(minutes=1)
    async with store.transaction() as transaction:
        await transaction.conversations.put("1", THREAD, first, NOW)
        await transaction.conversations.put("2", replace(THREAD, thread="18.1"), second, soon)
        await transaction.conversations.put("3", replace(THREAD, channel="C0ELSE"), elsewhere, soon)
    async with store.transaction() as transaction:
        assert await transaction.conversations.latest(CHANNEL, NOW, MANY) == (second,)
        assert await transaction.conversations.latest(replace(THREAD, thread="19.1"), soon, MANY) == (second,)
        assert await transaction.conversations.latest(CHANNEL, soon + timedelta(seconds=1), MANY) == ()
        await transaction.conversations.put("4", THREAD, second, soon)
        assert await transaction.conversations.latest(CHANNEL, NOW, MANY) == (first, second)
