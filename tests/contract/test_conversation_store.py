"""The contract of ConversationStore, over the fake and every database."""

from __future__ import annotations

from dataclasses import replace

from core.model.conversation import Speaker, Turn
from core.ports import Store
from tests.contract.records import CHANNEL, MANY, NOW, THREAD


async def test_a_history_holds_the_last_turns_of_its_thread_oldest_first(store: Store) -> None:
    turns = [Turn(Speaker.PERSON if number % 2 else Speaker.PLUMBLINE, f"turn {number}") for number in range(4)]
    async with store.transaction() as transaction:
        for number, turn in enumerate(turns):
            await transaction.conversations.add(f"key {number}", THREAD, turn, NOW)
        await transaction.conversations.add("key 3", THREAD, Turn(Speaker.PERSON, "again"), NOW)
        await transaction.conversations.add("other", replace(THREAD, thread="18.1"), turns[0], NOW)
        await transaction.conversations.add("no thread", CHANNEL, turns[0], NOW)
    async with store.transaction() as transaction:
        assert await transaction.conversations.history(THREAD, 3) == tuple(turns[1:])
        assert await transaction.conversations.history(CHANNEL, MANY) == ()
        assert await transaction.conversations.history(replace(THREAD, workspace="T0OTHER"), MANY) == ()


async def test_a_turn_is_found_by_its_key_in_its_channel(store: Store) -> None:
    turn = Turn(Speaker.PERSON, "how?")
    async with store.transaction() as transaction:
        await transaction.conversations.add("key", THREAD, turn, NOW)
        assert await transaction.conversations.get("key", THREAD) == turn
        assert await transaction.conversations.get("key", CHANNEL) == turn
        assert await transaction.conversations.get("key", replace(THREAD, channel="C0ELSE")) is None
        assert await transaction.conversations.get("another key", THREAD) is None


async def test_a_turn_that_is_forgotten_is_gone(store: Store) -> None:
    async with store.transaction() as transaction:
        for key in ("first", "second"):
            await transaction.conversations.add(key, THREAD, Turn(Speaker.PERSON, key), NOW)
    async with store.transaction() as transaction:
        await transaction.conversations.forget("first")
        await transaction.conversations.forget("never said")
    async with store.transaction() as transaction:
        assert [turn.text for turn in await transaction.conversations.history(THREAD, 10)] == ["second"]
