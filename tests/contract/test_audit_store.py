"""The contract of AuditStore, over the fake and every database; and that a database changes no entry."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import forgetting
from adapters.store.store import SqlStore
from core.model.audit import Act, AuditEntry
from core.ports import Store

NOW = datetime(2026, 3, 14, 9, 30, 5, 250_000, tzinfo=UTC)


def entry(number: int = 1, act: Act = Act.ASKED, **fields: object) -> AuditEntry:
    at = NOW + timedelta(minutes=number)
    usual = AuditEntry(f"key {number}", at, act, "slack:U1", f"slack:C1:{number}", "slack:C1", ("handbook/a.md",), "☃")
    return replace(usual, **fields)


async def added(store: Store, *entries: AuditEntry) -> None:
    for each in entries:
        async with store.transaction() as transaction:
            await transaction.audit.add(each)


async def latest(store: Store, limit: int = 100, before: int | None = None, act: Act | None = None) -> list[AuditEntry]:
    async with store.transaction() as transaction:
        return [each.entry for each in await transaction.audit.latest(limit, before, act)]


async def test_an_entry_is_kept_as_it_was_added(store: Store) -> None:
    await added(store, entry())
    assert await latest(store) == [entry()]


async def test_an_entry_of_a_known_key_is_left_as_it_is(store: Store) -> None:
    await added(store, entry(), entry(act=Act.VIEWED, actor="somebody else"))
    assert await latest(store) == [entry()]


async def test_the_latest_come_first_and_older_ones_page_by_page(store: Store) -> None:
    await added(store, *(entry(number) for number in range(5)))
    async with store.transaction() as transaction:
        first = await transaction.audit.latest(2)
    assert [each.entry for each in first] == [entry(4), entry(3)]
    assert await latest(store, 2, before=first[-1].number) == [entry(2), entry(1)]


async def test_entries_of_one_act_are_found(store: Store) -> None:
    await added(store, entry(1), entry(2, Act.PRESSED), entry(3))
    assert await latest(store, act=Act.PRESSED) == [entry(2, Act.PRESSED)]


async def test_what_happened_since_is_read_in_order_in_parts(store: Store) -> None:
    await added(store, *(entry(number) for number in range(5)))
    async with store.transaction() as transaction:
        first = await transaction.audit.since(NOW + timedelta(minutes=1), 0, 3)
        rest = await transaction.audit.since(NOW + timedelta(minutes=1), first[-1].number, 3)
    assert [each.entry for each in first] == [entry(1), entry(2), entry(3)]
    assert [each.entry for each in rest] == [entry(4)]


async def test_what_is_old_is_deleted_and_counted_and_its_numbers_are_not_given_again(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    await added(store, *(entry(number) for number in range(3)))
    async with store.transaction() as transaction:
        numbers = [each.number for each in await transaction.audit.latest(3)]
    assert await forgetting.delete_before(engine, {"audit": NOW + timedelta(days=1)}) == {"audit": 3}
    await added(store, entry(9))
    async with store.transaction() as transaction:
        (kept,) = await transaction.audit.latest(3)
    assert kept.number > max(numbers)


async def test_an_entry_of_a_transaction_that_fails_is_not_there(store: Store) -> None:
    async def failing() -> None:
        async with store.transaction() as transaction:
            await transaction.audit.add(entry())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert await latest(store) == []


@pytest.mark.parametrize("column", ["at", "act", "actor", "subject", "place", "detail", "documents", "key"])
async def test_the_database_refuses_to_change_an_entry(engine: AsyncEngine, column: str) -> None:
    store = SqlStore(engine)
    await added(store, entry())
    with pytest.raises(DBAPIError, match="the audit log is not changed"):
        async with engine.begin() as connection:
            await connection.execute(sa.text(f"UPDATE audit SET {column} = {column}"))
    assert await latest(store) == [entry()]
