"""Rate limits of chat channels, shared by all processes on the database. Each lane is one row."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import sqlalchemy as sa
import structlog
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.rate_limits import LocalRateLimiter
from adapters.store.database import insert_if_absent, outages_as
from adapters.store.tables import rate_limits
from core.model.errors import StoreUnavailable
from core.model.rate_limit import LimiterState, PostingRate, new_limiter_state

T = TypeVar("T")

# PostgreSQL's now() is the start of the transaction, before it waited for the row lock.
SERVER_CLOCK: sa.ColumnElement[float] = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double[float]())
DATABASE_TIMEOUT = 5.0  # seconds for the database, before this process limits its own rate

_BODY = TypeAdapter(LimiterState)

log = structlog.get_logger()


class SqlRateLimiter:
    """Implements `core.ports.RateLimiter` by the clock of the database.

    While the database is unavailable, each process limits its own rate.
    """

    def __init__(self, engine: AsyncEngine, clock: sa.ColumnElement[float] = SERVER_CLOCK) -> None:
        self._engine = engine
        self._clock = clock
        self._alone = LocalRateLimiter()
        self._changing = asyncio.Lock()  # a task that waits for a row uses no further connection

    async def take(self, lane: str, ticket: str, rate: PostingRate) -> float:
        try:
            return await self._change(lane, rate, lambda state, now: state.take(_digest(ticket), rate, now))
        except StoreUnavailable as error:
            log.info("turns are not shared", reason=str(error))
            return await self._alone.take(lane, ticket, rate)

    async def answered(self, lane: str, rate: PostingRate) -> None:
        try:
            await self._change(lane, rate, lambda state, now: (state.answered(rate, now), None))
        except StoreUnavailable:
            await self._alone.answered(lane, rate)

    async def rest(self, lane: str, seconds: float, rate: PostingRate) -> None:
        try:
            await self._change(lane, rate, lambda state, now: (state.rest(seconds, rate, now), None))
        except StoreUnavailable:
            await self._alone.rest(lane, seconds, rate)

    async def _change(
        self, name: str, rate: PostingRate, change: Callable[[LimiterState, float], tuple[LimiterState, T]]
    ) -> T:
        """Change a lane under a row lock. `change` gets its state and the time after the lock was granted."""
        lane = rate_limits.c.name == (row := _digest(name))
        state = sa.select(rate_limits.c.body).where(lane).with_for_update()
        with outages_as(StoreUnavailable):
            async with asyncio.timeout(DATABASE_TIMEOUT), self._changing, self._engine.begin() as connection:
                while (saved := await connection.scalar(state)) is None:
                    await insert_if_absent(
                        connection, rate_limits, {"name": row, "body": {}, "used_at": datetime.now(UTC)}
                    )
                now = await connection.scalar(sa.select(self._clock)) or 0.0
                current = _BODY.validate_python(saved) if saved else new_limiter_state(rate, now)
                changed, result = change(current, now)
                values = {"body": _BODY.dump_python(changed, mode="json"), "used_at": datetime.fromtimestamp(now, UTC)}
                await connection.execute(rate_limits.update().where(lane).values(values))
                return result


def _digest(name: str) -> str:
    """Return a digest, so that no channel or message is stored here by name."""
    return hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
