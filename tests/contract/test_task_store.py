"""The contract of TaskStore, over the fake and every database."""

from __future__ import annotations

from core.ports import Store, Task
from tests.contract.records import MANY


async def test_a_task_is_recorded_once_however_often_it_is_added(store: Store) -> None:
    first, again = Task("key", "answer", "q1", {"text": "one ☃"}), Task("key", "other", "q2", {})
    async with store.transaction() as transaction:
        assert await transaction.tasks.add(first)
    async with store.transaction() as transaction:
        assert not await transaction.tasks.add(again)
        assert await transaction.tasks.claim("us", MANY) == [first]


async def test_a_task_that_has_ended_is_not_recorded_again(store: Store) -> None:
    task = Task("key", "answer", "q1", {})
    async with store.transaction() as transaction:
        await transaction.tasks.add(task)
        await transaction.tasks.end(["key", "unknown"])
        assert not await transaction.tasks.add(task)
        assert await transaction.tasks.claim("us", MANY) == []


async def test_a_task_is_known_for_as_long_as_its_key_is(store: Store) -> None:
    async with store.transaction() as transaction:
        assert not await transaction.tasks.is_known("key")
        await transaction.tasks.add(Task("key", "answer", "q1", {}))
        assert await transaction.tasks.is_known("key")
        await transaction.tasks.end(["key"])
        assert await transaction.tasks.is_known("key")
        assert not await transaction.tasks.is_known("q1")


async def test_tasks_are_claimed_oldest_first_and_by_one_replica_each(store: Store) -> None:
    tasks = [Task(f"key {number}", "answer", str(number), {}) for number in (3, 1, 2)]
    for task in tasks:
        async with store.transaction() as transaction:
            await transaction.tasks.add(task)
    async with store.transaction() as transaction:
        assert await transaction.tasks.claim("us", 2) == tasks[:2]
    async with store.transaction() as transaction:
        assert await transaction.tasks.claim("them", MANY) == tasks[2:]
        assert await transaction.tasks.claim("us", MANY) == []


async def test_what_a_replica_lets_go_is_claimed_by_another_one_unless_it_has_ended(store: Store) -> None:
    tasks = [Task(key, "answer", key, {}) for key in ("ended", "kept", "left")]
    async with store.transaction() as transaction:
        for task in tasks:
            await transaction.tasks.add(task)
        await transaction.tasks.claim("us", MANY)
        await transaction.tasks.end(["ended"])
        assert await transaction.tasks.release(["us"], ["kept"]) == 1
        assert await transaction.tasks.claim("them", MANY) == tasks[2:]
        assert await transaction.tasks.release(["us"]) == 1
        assert await transaction.tasks.claim("them", MANY) == tasks[1:2]


async def test_a_task_that_is_reopened_belongs_to_a_replica_until_that_lets_go(store: Store) -> None:
    task = Task("key", "answer", "q1", {})
    async with store.transaction() as transaction:
        await transaction.tasks.add(task)
        await transaction.tasks.claim("us", MANY)
        await transaction.tasks.end(["key"])
        await transaction.tasks.reopen(["key"], "us")
        assert await transaction.tasks.claim("them", MANY) == []
        await transaction.tasks.release(["us"])
        assert await transaction.tasks.claim("them", MANY) == [task]


async def test_tasks_of_nobody_come_first_and_those_of_busy_people_wait(store: Store) -> None:
    def asked(key: str, person: str) -> Task:
        return Task(key, "answer", key, {"asker": {"platform": "slack", "id": person}, "text": "?"})

    first, second, third = asked("a", "U1"), asked("b", "U2"), asked("c", "U1")
    alert, odd = Task("d", "investigate_incident", "i1", {}), Task("e", "react", "m1", {"asker": None})
    async with store.transaction() as transaction:
        for task in (first, second, third, alert, odd):
            await transaction.tasks.add(task)
        assert await transaction.tasks.claim("us", 1) == [alert]
        assert await transaction.tasks.claim("us", MANY, ["U1", "U'9"]) == [odd, second]
        assert await transaction.tasks.claim("us", MANY, ["U2"]) == [first, third]
