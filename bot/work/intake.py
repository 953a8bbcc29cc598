"""Arrivals at the same time are written in one transaction, so that they wait for the disk once together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from core.model.errors import Conflict, Unavailable

BATCH = 100  # arrivals written at once

Arrival = TypeVar("Arrival")
Stored = TypeVar("Stored")


class Intake(Generic[Arrival, Stored]):
    """Writes arrivals in the order in which they come, as many at once as came while others were written."""

    def __init__(self, write: Callable[[Sequence[Arrival]], Awaitable[list[Stored]]]) -> None:
        """`write` stores all of them or none, and returns what became of each."""
        self._write = write
        self._waiting: list[tuple[Arrival, asyncio.Future[Stored]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def take(self, arrival: Arrival) -> Stored:
        """Store an arrival and return the outcome. Raises what storing it raised."""
        outcome: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append((arrival, outcome))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._work())
        return await outcome

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            (stored,) = await asyncio.gather(self._write([each for each, _ in batch]), return_exceptions=True)
            if isinstance(stored, list):
                outcomes: list[Stored | BaseException] = [*stored]
            elif not isinstance(stored, Conflict) and (len(batch) == 1 or isinstance(stored, Unavailable)):
                outcomes = [stored] * len(batch)
            else:  # one of them spoils the batch, or another writer was in its way: each on its own
                outcomes = [await self._alone(arrival) for arrival, _ in batch]
            for (_, waiting), outcome in zip(batch, outcomes, strict=True):
                _settle(waiting, outcome)

    async def _alone(self, arrival: Arrival) -> Stored | BaseException:
        (stored,) = await asyncio.gather(self._write([arrival]), return_exceptions=True)
        return stored[0] if isinstance(stored, list) else stored


def _settle(waiting: asyncio.Future[Stored], outcome: Stored | BaseException) -> None:
    """Tell whoever waits; nobody does if the request was given up."""
    if waiting.done():
        return
    if isinstance(outcome, BaseException):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
