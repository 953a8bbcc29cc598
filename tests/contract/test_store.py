"""The contract of Store, over the fake and every database."""

from __future__ import annotations

import asyncio

import pytest

from core.model.conversation import Speaker, Turn
from core.model.errors import Conflict
from core.ports import Ingestion, Store, Task
from tests.contract.records import CHANNEL, MANY, NOW, THREAD, incident, prediction, saved


class Undone(Exception):
    """Ends a transaction without a commit."""


async def test_a_transaction_that_raises_leaves_nothing_behind(store: Store) -> None:
    async def write_everything_and_raise() -> None:
        async with store.transaction() as transaction:
            await transaction.incidents.save(incident())
            await transaction.incidents.add_deliveries({"delivery": NOW})
            await transaction.tasks.add(Task("task", "workflow", "subject", {}))
            await transaction.posts.intend("post", CHANNEL)
            await transaction.predictions.add(prediction())
            await transaction.conversations.put("turn", THREAD, Turn(Speaker.PERSON, "hello"), NOW)
            await transaction.ingestions.record(Ingestion("handbook", NOW, 3))
            raise Undone

    with pytest.raises(Undone):
        await write_everything_and_raise()
    async with store.transaction() as transaction:
        assert await transaction.incidents.get("i1") is None
        assert await transaction.incidents.known_deliveries(["delivery"]) == frozenset()
        assert await transaction.tasks.claim("us", MANY) == []
        assert await transaction.predictions.get("p1") is None
        assert await transaction.conversations.history(THREAD, MANY) == ()
        assert await transaction.ingestions.all() == []


async def test_a_transaction_sees_what_it_has_written(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.incidents.save(incident())
        assert await transaction.incidents.latest_for("alertmanager", "group") == incident()


async def test_a_conflict_undoes_only_what_its_own_transaction_wrote(store: Store) -> None:
    async def add_task_and_lose() -> None:
        async with store.transaction() as transaction:
            await transaction.tasks.add(Task("task", "workflow", "subject", {}))
            await transaction.incidents.save(incident("second"))

    await saved(store, incident("first"))
    with pytest.raises(Conflict):
        await add_task_and_lose()
    async with store.transaction() as transaction:
        assert await transaction.tasks.claim("us", MANY) == []
        assert await transaction.incidents.get("first") == incident("first")


async def test_a_lock_is_held_by_one_at_a_time(store: Store) -> None:
    order: list[str] = []
    held = asyncio.Event()

    async def first() -> None:
        async with store.lock("message"):
            held.set()
            await asyncio.sleep(0)
            order.append("first")

    async def second() -> None:
        await held.wait()
        async with store.lock("another message"):
            order.append("elsewhere")
        async with store.lock("message"):
            order.append("second")

    await asyncio.gather(first(), second())
    assert order.index("first") < order.index("second")
    async with store.lock("message"):
        order.append("third")
