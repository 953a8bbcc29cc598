"""Deliveries that arrive at the same time are written in one transaction: the disk is waited for once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from core.errors import Unavailable
from core.incident import AlertDelivery, Incident

BATCH = 100  # deliveries written at once

Outcome = Incident | BaseException | None
Write = Callable[[Sequence[AlertDelivery]], Awaitable[list[Incident | None]]]


class Intake:
    """Writes deliveries in the order in which they arrive, as many at once as came while others were written."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[tuple[AlertDelivery, asyncio.Future[Incident | None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def take(self, delivery: AlertDelivery) -> Incident | None:
        """The incident that a delivery opened or was folded into, once that is stored. Raises what storing it raised."""
        outcome: asyncio.Future[Incident | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((delivery, outcome))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._work())
        return await outcome

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            (stored,) = await asyncio.gather(self._write([each for each, _ in batch]), return_exceptions=True)
            if isinstance(stored, list):
                outcomes = list(stored)
            elif len(batch) == 1 or isinstance(stored, Unavailable):
                outcomes = [stored] * len(batch)
            else:  # one of them spoils the batch: each on its own
                outcomes = [await self._alone(delivery) for delivery, _ in batch]
            for (_, waiting), outcome in zip(batch, outcomes, strict=True):
                _settle(waiting, outcome)

    async def _alone(self, delivery: AlertDelivery) -> Outcome:
        (stored,) = await asyncio.gather(self._write([delivery]), return_exceptions=True)
        return stored[0] if isinstance(stored, list) else stored


def _settle(waiting: asyncio.Future[Incident | None], outcome: Outcome) -> None:
    """Tell whoever waits; nobody does if the request was given up."""
    if waiting.done():
        return
    if isinstance(outcome, BaseException):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
