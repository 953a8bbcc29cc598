"""What is learned in a database: when it is looked at, and what may have become of it."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.model_formats import ArrayFormat, Arrays
from adapters.store.database import open_database
from adapters.store.knowledge import SqlLearnedModel
from adapters.store.tables import learned_models
from core.model.errors import StoreUnavailable
from tests.fakes.clock import FakeClock

NOBODY = "postgresql://plumbline@127.0.0.1:9/plumbline"  # nobody listens on the discard port


class Counted:
    """A format for one number that counts how often it is decoded."""

    def __init__(self) -> None:
        self.decoded = 0
        self.form: ArrayFormat[int] = ArrayFormat(lambda number: {"number": np.array(number)}, self._unpack)

    def _unpack(self, arrays: Arrays) -> int:
        self.decoded += 1
        return int(arrays["number"])


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def reader(engine: AsyncEngine, counted: Counted, clock: FakeClock) -> SqlLearnedModel[int]:
    return SqlLearnedModel(engine, "number", counted.form, clock)


@pytest.fixture
def writer(engine: AsyncEngine, clock: FakeClock) -> SqlLearnedModel[int]:
    return SqlLearnedModel(engine, "number", Counted().form, clock)


async def test_what_another_process_saved_is_seen_after_two_seconds_and_not_looked_for_before(
    reader: SqlLearnedModel[int], writer: SqlLearnedModel[int], clock: FakeClock
) -> None:
    assert await reader.load() is None
    await writer.save(1)
    clock.advance(1.9)
    assert await reader.load() is None
    clock.advance(0.1)
    assert await reader.load() == 1


async def test_what_is_the_same_is_decoded_once_however_often_it_is_looked_at(
    reader: SqlLearnedModel[int], writer: SqlLearnedModel[int], clock: FakeClock, counted: Counted
) -> None:
    await writer.save(1)
    for _ in range(3):
        assert await asyncio.gather(reader.load(), reader.load_newest(), reader.load()) == [1, 1, 1]
        clock.advance(2)
    assert counted.decoded == 1
    await writer.save(1)
    assert await reader.load() == 1
    assert counted.decoded == 2


async def test_a_clock_that_is_set_back_keeps_nothing_old(
    reader: SqlLearnedModel[int], writer: SqlLearnedModel[int], clock: FakeClock
) -> None:
    assert await reader.load() is None
    await writer.save(1)
    clock.advance(-3600)
    assert await reader.load() == 1


async def test_one_name_knows_nothing_of_another(engine: AsyncEngine, counted: Counted, clock: FakeClock) -> None:
    one, other = (SqlLearnedModel(engine, name, counted.form, clock) for name in ("one", "other"))
    await one.save(1)
    assert await other.load() is None
    await other.save(2)
    assert (await one.load_newest(), await other.load_newest()) == (1, 2)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
async def test_a_damaged_row_is_as_none_until_something_is_saved(
    engine: AsyncEngine, reader: SqlLearnedModel[int], writer: SqlLearnedModel[int], content: bytes
) -> None:
    await writer.save(1)
    async with engine.begin() as connection:
        await connection.execute(learned_models.update().values(version="damaged", content=content))
    assert await reader.load_newest() is None
    await writer.save(2)
    assert await reader.load_newest() == 2


async def test_a_database_that_is_not_there_is_said(counted: Counted, clock: FakeClock) -> None:
    engine = open_database(NOBODY)
    nowhere = SqlLearnedModel(engine, "number", counted.form, clock)
    with pytest.raises(StoreUnavailable):
        await nowhere.load()
    with pytest.raises(StoreUnavailable):
        await nowhere.save(1)
    await engine.dispose()
