"""Learned models in the database, shared by all processes."""

from __future__ import annotations

import asyncio
import io
import uuid
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.array_formats import ArrayFormat
from adapters.store.database import outages_as, upsert
from adapters.store.tables import learned_models
from core.model.errors import StoreUnavailable
from core.ports import Clock

T = TypeVar("T")

INTERVAL = timedelta(seconds=2)  # between checks for a newer model; also part of the contract in core/ports/models.py


class SqlLearnedModel(Generic[T]):
    """Implements `core.ports.LearnedStore` on one row of a table. Everything raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, name: str, form: ArrayFormat[T], clock: Clock) -> None:
        self._engine = engine
        self._name = name
        self._form = form
        self._clock = clock
        self._version = ""  # of the loaded model
        self._content: T | None = None
        self._looked_at: datetime | None = None
        self._looking = asyncio.Lock()  # a new model is fetched once, however many callers wait

    async def load(self) -> T | None:
        async with self._looking:
            now = self._clock.now()
            # Also checked if the clock was set back.
            if self._looked_at is None or abs(now - self._looked_at) >= INTERVAL:
                await self._look()
                self._looked_at = now
            return self._content

    async def load_newest(self) -> T | None:
        await self._look_next_time()
        return await self.load()

    async def save(self, content: T, /) -> None:
        written = await asyncio.to_thread(self._encoded, content)
        version, now = uuid.uuid4().hex, self._clock.now()
        with outages_as(StoreUnavailable):
            async with self._engine.begin() as connection:
                await upsert(
                    connection, learned_models, name=self._name, version=version, saved_at=now, content=written
                )
        await self._look_next_time()

    async def _look_next_time(self) -> None:
        async with self._looking:
            self._looked_at = None

    async def _look(self) -> None:
        """Load the stored model. One that is current is not fetched again."""
        version, content = learned_models.c.version, learned_models.c.content
        query = sa.select(version, sa.case((version != self._version, content)).label("content"))
        with outages_as(StoreUnavailable):
            async with self._engine.begin() as connection:
                saved = (await connection.execute(query.where(learned_models.c.name == self._name))).one_or_none()
        if saved is None:
            self._version, self._content = "", None
        elif saved.content is not None:
            self._version, self._content = saved.version, await asyncio.to_thread(self._decoded, saved.content)

    def _encoded(self, content: T) -> bytes:
        file = io.BytesIO()
        self._form.write(content, file)
        return file.getvalue()

    def _decoded(self, content: bytes) -> T | None:
        return self._form.read(io.BytesIO(content))
