"""The contract of PostStore, over the fake and every database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.model.conversation import MessageReference, Place
from core.ports import Post, Store
from tests.contract.records import CHANNEL, THREAD


async def test_a_post_goes_from_wish_to_attempt_to_message(store: Store) -> None:
    reference = MessageReference(THREAD, "17.30")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", THREAD) == Post("intent", THREAD)
        assert await transaction.posts.attempt("intent", THREAD) == Post("intent", THREAD)
        assert await transaction.posts.attempt("new", THREAD) is None
    async with store.transaction() as transaction:
        for intent in ("intent", "new"):
            assert await transaction.posts.attempt(intent, CHANNEL) == Post(intent, THREAD, attempted=True)
        await transaction.posts.posted("intent", reference, "v1")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", THREAD) == Post("intent", THREAD, True, reference, "v1")
        await transaction.posts.edited("intent", "v2")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", CHANNEL) == Post("intent", THREAD, True, reference, "v2")


async def test_a_post_that_is_forgotten_is_a_wish_again(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.posts.attempt("intent", CHANNEL)
        await transaction.posts.posted("intent", MessageReference(CHANNEL, "17.30"), "v1")
        await transaction.posts.forget("intent")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", CHANNEL) == Post("intent", CHANNEL)


async def test_a_withdrawn_post_keeps_its_record_and_is_never_a_wish_again(store: Store) -> None:
    reference = MessageReference(CHANNEL, "17.30")
    async with store.transaction() as transaction:
        await transaction.posts.intend("intent", CHANNEL)
        await transaction.posts.posted("intent", reference, "v1")
        assert await transaction.posts.withdraw("intent", CHANNEL) == Post(
            "intent", CHANNEL, False, reference, "v1", True
        )
        assert (await transaction.posts.withdraw("never meant", CHANNEL)).withdrawn
    async with store.transaction() as transaction:
        assert (await transaction.posts.intend("intent", CHANNEL)).withdrawn
        attempts = [await transaction.posts.attempt(intent, CHANNEL) for intent in ("intent", "never meant")]
        assert all(each is not None and each.withdrawn and not each.attempted for each in attempts)
        assert (await transaction.posts.intend("never meant", CHANNEL)) == attempts[1]


async def test_two_who_intend_the_same_share_one_record(store: Store) -> None:
    async def intend() -> Post:
        async with store.transaction() as transaction:
            return await transaction.posts.intend("intent", CHANNEL)

    assert await asyncio.gather(*(intend() for _ in range(5))) == [Post("intent", CHANNEL)] * 5


async def test_a_post_is_found_by_its_message_whatever_thread_that_stands_in(store: Store) -> None:
    reference = MessageReference(THREAD, "17.31")
    async with store.transaction() as transaction:
        await transaction.posts.intend("intent", THREAD)
        await transaction.posts.posted("intent", reference, "v1", "answer-1")
        await transaction.posts.intend("another", CHANNEL)
        await transaction.posts.posted("another", MessageReference(CHANNEL, "17.32"), "v1")
    async with store.transaction() as transaction:
        found = await transaction.posts.at(MessageReference(replace(THREAD, thread=None), "17.31"))
        assert found == Post("intent", THREAD, False, reference, "v1", claim="answer-1")
        assert await transaction.posts.at(MessageReference(replace(THREAD, channel="C0OTHER"), "17.31")) is None
        assert await transaction.posts.at(MessageReference(THREAD, "17.33")) is None
        await transaction.posts.edited("intent", "v2", "answer-2")
    async with store.transaction() as transaction:
        post = await transaction.posts.at(reference)
        assert post is not None
        assert post.claim == "answer-2"
        await transaction.posts.forget("intent")
    async with store.transaction() as transaction:
        assert await transaction.posts.at(reference) is None


async def test_no_more_new_messages_of_a_channel_are_admitted_than_its_limit_and_each_is_counted_once(
    store: Store,
) -> None:
    now, minute = datetime(2026, 3, 14, 9, 30, tzinfo=UTC), timedelta(minutes=1)

    async def admits(intent: str, place: Place, at: datetime) -> bool:
        async with store.transaction() as transaction:
            return await transaction.posts.admit(intent, place, at, at - minute, 2)

    assert [await admits(intent, CHANNEL, now) for intent in ("a", "b", "a", "c")] == [True, True, True, False]
    assert await admits("d", replace(CHANNEL, channel="C0OTHER"), now)
    later = now + minute
    assert [await admits(intent, CHANNEL, later) for intent in ("a", "c", "e", "f")] == [True, True, True, False]
