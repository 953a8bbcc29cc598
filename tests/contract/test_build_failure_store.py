"""The contract of BuildFailureStore, over the fake and every database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.model.badge import RecordedFailure
from core.model.conversation import Platform
from core.ports import Store
from tests.contract.records import CHANNEL, NOW, THREAD


def failure(failure_id: str, minute: int = 0, **fields: object) -> RecordedFailure:
    at = NOW + timedelta(minutes=minute)
    return replace(RecordedFailure(failure_id, "ci/acme/api", "one\n  zwei ü\n", 0, 1, at, THREAD), **fields)


async def test_a_failed_build_comes_back_as_it_was_saved_last(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.build_failures.save(failure("f"))
        assert await transaction.build_failures.get("f") == failure("f")
        confirmed = failure("f", last=0, confirmed_by="slack:U1", place=None)
        await transaction.build_failures.save(confirmed)
    async with store.transaction() as transaction:
        assert await transaction.build_failures.get("f") == confirmed
        assert await transaction.build_failures.get("g") is None


async def test_the_confirmed_failures_of_a_project_come_newest_first(store: Store) -> None:
    known = [failure(str(number), number, confirmed_by="U1") for number in range(3)]
    async with store.transaction() as transaction:
        for each in (*known, failure("open", 7), failure("other", 8, confirmed_by="U1", project="another")):
            await transaction.build_failures.save(each)
        assert await transaction.build_failures.confirmed("ci/acme/api", 2) == [known[2], known[1]]


async def test_the_failure_of_a_thread_is_the_one_that_was_asked_for_last(store: Store) -> None:
    elsewhere = replace(THREAD, thread="18.1")
    async with store.transaction() as transaction:
        for each in (failure("a"), failure("b", 1), failure("c", 2, place=elsewhere), failure("d", 3, place=None)):
            await transaction.build_failures.save(each)
        assert await transaction.build_failures.in_thread(THREAD) == failure("b", 1)
        assert await transaction.build_failures.in_thread(replace(THREAD, platform=Platform.TEAMS)) is None
        assert await transaction.build_failures.in_thread(CHANNEL) is None


async def test_only_the_latest_failures_of_a_project_are_kept(store: Store) -> None:
    async with store.transaction() as transaction:
        for number in range(3):
            await transaction.build_failures.save(failure(f"open {number}", number))
            await transaction.build_failures.save(failure(f"told {number}", number, confirmed_by="U1"))
            await transaction.build_failures.save(failure(f"other {number}", number, project="another"))
        await transaction.build_failures.forget_older("ci/acme/api", 2)
        kept = {
            name: await transaction.build_failures.get(f"{name} 0") is not None for name in ("open", "told", "other")
        }
        assert kept == {"open": False, "told": False, "other": True}
        assert await transaction.build_failures.get("open 1") == failure("open 1", 1)
