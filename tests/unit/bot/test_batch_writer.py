"""Deliveries that arrive together are written together, and one that is refused spoils none of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bot.work.inbox import WRITTEN_BATCH, BatchWriter
from core.model.alert import AlertDelivery
from core.model.errors import ConfigurationError, Deadlock, StoreUnavailable
from core.model.incident import Incident
from tests.samples import START, alert, incident


def delivery(key: str) -> AlertDelivery:
    return AlertDelivery(key, "alertmanager", key, (alert(),), START)


class Writer:
    """Stores deliveries by their keys, once it may; refuses `refused`."""

    def __init__(self, refused: str = "") -> None:
        self.batches: list[list[str]] = []
        self.begun, self.may_write = asyncio.Event(), asyncio.Event()
        self.refused = refused
        self.is_down = False
        self.meets_others = 0  # times

    async def write(self, deliveries: Sequence[AlertDelivery]) -> list[Incident | None]:
        self.batches.append([each.key for each in deliveries])
        self.begun.set()
        await self.may_write.wait()
        if self.is_down:
            raise StoreUnavailable("The database is down.")
        if self.meets_others:
            self.meets_others -= 1
            raise Deadlock("Somebody else waited for this.")
        if self.refused in self.batches[-1]:
            raise ConfigurationError("There is no route.")
        return [incident(id=each.key) for each in deliveries]


async def taken(batch_writer: BatchWriter, writer: Writer, keys: Sequence[str]) -> list[object]:
    """What becomes of deliveries of which the first is under way when the others arrive."""
    requests = [asyncio.ensure_future(batch_writer.take(delivery(key))) for key in keys]
    await writer.begun.wait()
    writer.may_write.set()
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    return [each.id if isinstance(each, Incident) else type(each) for each in outcomes]


async def test_what_arrives_while_others_are_written_is_written_at_once() -> None:
    writer = Writer()
    keys = [str(number) for number in range(WRITTEN_BATCH + 20)]
    assert await taken(BatchWriter(writer.write), writer, keys) == keys
    assert len(writer.batches) == 2
    assert [key for batch in writer.batches for key in batch] == keys


async def test_of_several_one_that_is_refused_spoils_none_of_the_others() -> None:
    writer = Writer(refused="2")
    assert await taken(BatchWriter(writer.write), writer, ["1", "2", "3"]) == ["1", ConfigurationError, "3"]


async def test_a_database_that_is_down_is_not_asked_again_for_each() -> None:
    writer = Writer()
    writer.is_down = True
    assert await taken(BatchWriter(writer.write), writer, ["1", "2", "3"]) == [StoreUnavailable] * 3
    assert len(writer.batches) == 1


@pytest.mark.parametrize("count", [1, 3])
async def test_what_met_another_writer_is_written_again_each_on_its_own(count: int) -> None:
    writer = Writer()
    keys = [str(number) for number in range(count)]
    writer.meets_others = 1
    assert await taken(BatchWriter(writer.write), writer, keys) == keys
    assert writer.batches == [keys, *([key] for key in keys)]


async def test_a_request_that_was_given_up_keeps_nobody_waiting() -> None:
    writer = Writer()
    batch_writer = BatchWriter(writer.write)
    given_up = asyncio.ensure_future(batch_writer.take(delivery("1")))
    await writer.begun.wait()
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    writer.may_write.set()
    stored = await batch_writer.take(delivery("2"))
    assert stored is not None
    assert stored.id == "2"
