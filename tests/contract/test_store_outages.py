"""A database that is not there, full or restarted: what was written stays, and everybody is told to try again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import database as store_database
from adapters.store.conversations import SqlConsoleMessages, SqlTeamsConversations
from adapters.store.database import migrate, open_database, run_when_available
from adapters.store.store import SqlStore
from core.model.errors import ChatUnavailable, StoreUnavailable
from core.model.incident import Incident
from core.ports import Task, Transaction
from handlers.common.stored_incident import change_incident, save_next
from tests.databases import database, new_postgres_database, sqlite_url
from tests.samples import incident

NOBODY = "postgresql://plumbline@127.0.0.1:9/plumbline"  # nobody listens on the discard port


async def add(store: SqlStore, key: str, size: int = 0) -> None:
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task(key, "answer", "q", {"text": "x" * size}))


async def keys(store: SqlStore) -> list[str]:
    async with store.transaction() as transaction:
        await transaction.tasks.release(["us"])
        return [task.key for task in await transaction.tasks.claim("us", 100)]


async def test_a_server_that_is_not_there_makes_the_store_unavailable() -> None:
    engine = open_database(NOBODY)
    with pytest.raises(StoreUnavailable, match=r"^The database cannot be read or written: .*\.$"):
        await keys(SqlStore(engine))
    with pytest.raises(StoreUnavailable):
        await migrate(engine)
    with pytest.raises(ChatUnavailable):
        await SqlConsoleMessages(engine).page("help", 1)
    references = SqlTeamsConversations(engine)
    for asked in (
        references.get("a"),
        references.put("a", {}),
        references.beginning_with("a"),
        references.remove("a", ""),
    ):
        with pytest.raises(StoreUnavailable):
            await asked
    await engine.dispose()


async def test_a_step_of_the_start_is_done_again_while_the_server_comes_up_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    async def there_at_the_third_look() -> None:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise StoreUnavailable("The database is starting.")

    nobody = open_database(NOBODY)
    monkeypatch.setattr(store_database, "PAUSE", 0.001)
    await run_when_available(nobody, there_at_the_third_look)
    assert looks == 3

    monkeypatch.setattr(store_database, "SERVER_START_TIMEOUT", 0.0)
    with pytest.raises(StoreUnavailable):
        await run_when_available(nobody, partial(migrate, nobody))
    await nobody.dispose()


async def test_a_file_that_cannot_be_read_at_the_start_is_not_waited_for(tmp_path: Path) -> None:
    looks = 0

    async def never_there() -> None:
        nonlocal looks
        looks += 1
        raise StoreUnavailable("The disk is full.")

    file = open_database(sqlite_url(tmp_path))
    with pytest.raises(StoreUnavailable):
        await run_when_available(file, never_there)
    assert looks == 1
    await file.dispose()


async def test_a_full_disk_refuses_what_is_new_and_keeps_what_is_there(tmp_path: Path) -> None:
    async with database(sqlite_url(tmp_path)) as engine:
        store = SqlStore(engine)
        await add(store, "before")
        await _limit(engine, extra_pages=4)
        with pytest.raises(StoreUnavailable, match="full"):
            await add(store, "too much", size=1_000_000)
        assert await keys(store) == ["before"]
        await _limit(engine, extra_pages=10_000)
        await add(store, "after", size=1_000_000)
        assert await keys(store) == ["before", "after"]


async def test_a_mistake_of_ours_is_no_outage(tmp_path: Path) -> None:
    engine = open_database(sqlite_url(tmp_path))
    await migrate(engine)
    async with SqlStore(engine).transaction() as transaction:
        await transaction.tasks.add(Task("key", "answer", "q", {}))
        with pytest.raises(IntegrityError):
            await transaction.tasks._sql.execute(sa.text("INSERT INTO deliveries (key) VALUES ('k')"))
    await engine.dispose()


@pytest.mark.external
async def test_a_restarted_server_undoes_what_was_under_way_and_is_found_again(postgres: str) -> None:
    async with new_postgres_database(postgres) as url, database(url) as engine, database(url) as other:
        store = SqlStore(engine)
        await add(store, "before")
        with pytest.raises(StoreUnavailable):
            await _interrupted(store, other)
        assert await keys(store) == ["before"]


@pytest.mark.external
async def test_of_two_who_wait_for_each_other_one_begins_anew_and_both_end(postgres: str) -> None:
    async with new_postgres_database(postgres) as url, database(url) as engine:
        store = SqlStore(engine)
        for name in ("a", "b"):
            async with store.transaction() as transaction:
                await transaction.incidents.save(incident(id=name, group_key=name, revision=1))
        both, attempts = asyncio.Barrier(2), 0

        async def changed(first: str, second: str) -> None:
            async def saved(latest: Incident, transaction: Transaction) -> Incident:
                nonlocal attempts
                attempts += 1
                mine = await save_next(replace(latest, taken_by=first), latest, transaction)
                if attempts <= both.parties:
                    await both.wait()
                other = await transaction.incidents.get(second)
                assert other is not None
                await save_next(replace(other, title=f"{other.title}!"), other, transaction)
                return mine

            await change_incident(first, saved, store)

        await asyncio.gather(changed("a", "b"), changed("b", "a"))
        async with store.transaction() as transaction:
            kept = {each.id: each for each in await transaction.incidents.recent(9)}
    assert attempts > both.parties, "nobody waited for anybody"
    assert {(each.id, each.taken_by, each.title, each.revision) for each in kept.values()} == {
        (name, name, f"{incident().title}!", 3) for name in ("a", "b")
    }


async def _interrupted(store: SqlStore, other: AsyncEngine) -> None:
    """A transaction whose connection the server closes, as it does when it is stopped."""
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task("under way", "answer", "q", {}))
        async with other.connect() as administrator:
            await administrator.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        await transaction.tasks.add(Task("too late", "answer", "q", {}))


async def _limit(engine: AsyncEngine, extra_pages: int) -> None:
    """Let the file grow by so many pages and no more."""
    async with engine.connect() as connection:
        used = (await connection.execute(sa.text("PRAGMA page_count"))).scalar_one()
        await connection.execute(sa.text(f"PRAGMA max_page_count = {used + extra_pages}"))
