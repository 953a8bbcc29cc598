"""What the operator is told of tasks that wait, and which request asked for each, over the fake and every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from core.model.running import correlated, current_correlation, new_correlation, parse_correlation
from core.ports import Backlog, Store, Task


async def add(store: Store, *keys: str) -> None:
    async with store.transaction() as transaction:
        for key in keys:
            await transaction.tasks.add(Task(key, "workflow", key, {}))


async def backlog(store: Store) -> Backlog:
    async with store.transaction() as transaction:
        return await transaction.tasks.backlog()


async def test_nothing_waits_where_nothing_was_asked_for(store: Store) -> None:
    assert await backlog(store) == Backlog(0, None, 0)


async def test_what_waits_is_counted_with_the_time_of_the_oldest_and_apart_from_what_is_under_way(store: Store) -> None:
    before = datetime.now(UTC)
    await add(store, "a", "b", "c")
    async with store.transaction() as transaction:
        await transaction.tasks.claim("me", 1)
    found = await backlog(store)
    assert (found.waiting, found.under_way) == (2, 1)
    assert found.oldest is not None
    assert before - timedelta(seconds=1) <= found.oldest <= datetime.now(UTC)


async def test_what_has_ended_is_not_counted(store: Store) -> None:
    await add(store, "a", "b")
    async with store.transaction() as transaction:
        await transaction.tasks.claim("me", 2)
        await transaction.tasks.end({"a", "b"})
    assert await backlog(store) == Backlog(0, None, 0)


async def test_a_task_remembers_the_request_that_asked_for_it(store: Store) -> None:
    request = new_correlation()
    with correlated(request):
        await add(store, "a")
    await add(store, "b")
    async with store.transaction() as transaction:
        tasks = {task.key: task for task in await transaction.tasks.claim("me", 2)}
    assert parse_correlation(tasks["a"].correlation) == request
    assert tasks["b"].correlation == ""


def test_what_is_no_correlation_is_none() -> None:
    for text in ("", "00-x-y-01", f"00-{'0' * 31}-{'0' * 16}-01", str(new_correlation()) + "\n"):
        assert parse_correlation(text) is None


def test_outside_of_a_request_there_is_no_correlation() -> None:
    with correlated(new_correlation()):
        assert current_correlation()
    assert current_correlation() == ""
