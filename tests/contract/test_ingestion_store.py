"""The contract of IngestionStore and CursorStore, over the fake and every database."""

from __future__ import annotations

from datetime import datetime, timedelta

from core.ports import Ingestion, SourceCursor, Store
from tests.contract.records import NOW


async def test_the_last_ingestion_of_every_source_is_kept(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", NOW, 7))
        await transaction.ingestions.record(Ingestion("handbook", NOW, 3))
        await transaction.ingestions.record(
            Ingestion("wiki", NOW + timedelta(hours=1), 7, "It is down.", ("a.pdf: It is odd.",))
        )
        assert await transaction.ingestions.all() == [
            Ingestion("handbook", NOW, 3),
            Ingestion("wiki", NOW + timedelta(hours=1), 7, "It is down.", ("a.pdf: It is odd.",)),
        ]


async def test_a_source_that_is_no_longer_read_is_forgotten(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", NOW, 7))
        await transaction.ingestions.record(Ingestion("handbook", NOW, 3))
        await transaction.ingestions.forget("wiki")
        await transaction.ingestions.forget("unknown")
        assert await transaction.ingestions.all() == [Ingestion("handbook", NOW, 3)]


async def test_a_first_import_is_told_with_what_was_read_so_far(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("handbook", NOW, 3))
        await transaction.cursors.save("handbook", SourceCursor("abc", 3))
        await transaction.cursors.save("chat", SourceCursor("page 3", 1500))
        assert await transaction.ingestions.all() == [Ingestion("chat", None, 1500), Ingestion("handbook", NOW, 3)]
        await transaction.ingestions.forget("chat")
        assert await transaction.cursors.load("chat") is None
        assert await transaction.ingestions.all() == [Ingestion("handbook", NOW, 3)]


async def test_how_far_a_source_was_read_is_kept_per_source(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.cursors.save("wiki", SourceCursor("page 1", 10))
        await transaction.cursors.save("chat", SourceCursor("", 0))
        await transaction.cursors.save("wiki", SourceCursor("page 2", 20))
    async with store.transaction() as transaction:
        assert await transaction.cursors.load("wiki") == SourceCursor("page 2", 20)
        assert await transaction.cursors.load("chat") == SourceCursor("", 0)
        assert await transaction.cursors.load("handbook") is None


async def test_a_time_of_any_zone_comes_back_as_the_same_moment(store: Store) -> None:
    elsewhere = datetime.fromisoformat("2026-03-14T11:30:05.250+02:00")
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", elsewhere, 7))
        (ingestion,) = await transaction.ingestions.all()
    assert ingestion.finished_at == NOW
