"""Learned models in the database, shared by all processes."""

from __future__ import annotations

import asyncio
import io
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.array_file import ArrayFormat
from adapters.store.database import outages_as, upsert
from adapters.store.tables import learned_models
from core.model.errors import StoreUnavailable
from core.ports import Clock

T = TypeVar("T")

INTERVAL = timedelta(seconds=2)  # between checks for a newer model; also part of the contract in core/ports/models.py


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    version: str
    content: T | None


class SqlLearnedModel(Generic[T]):
    """Implements `core.ports.LearnedStore` on one row of a table. Everything raises StoreUnavailable."""

    def __init__(self, engine: AsyncEngine, name: str, form: ArrayFormat[T], clock: Clock) -> None:
        self._engine = engine
        self._name = name
        self._form = form
        self._clock = clock
        self._loaded: _Loaded[T] | None = None
        self._looked_at: datetime | None = None
        self._looking = asyncio.Lock()  # a new model is fetched once, however many callers wait

    async def load(self) -> T | None:
        async with self._looking:
            now = self._clock.now()
            # Also checked if the clock was set back.
            if self._looked_at is None or abs(now - self._looked_at) >= INTERVAL:
                self._loaded = await self._look(self._loaded)
                self._looked_at = now
            return self._loaded and self._loaded.content

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

    async def _look(self, known: _Loaded[T] | None) -> _Loaded[T] | None:
        """Return `known` if it is current, without fetching its content; otherwise the stored model."""
        version, content = learned_models.c.version, learned_models.c.content
        is_new = version != (known.version if known is not None else "")
        query = sa.select(version, sa.case((is_new, content)).label("content"))
        with outages_as(StoreUnavailable):
            async with self._engine.begin() as connection:
                rows = await connection.execute(query.where(learned_models.c.name == self._name))
                saved = rows.one_or_none()
        if saved is None:
            return None
        if saved.content is None:
            return known
        return _Loaded(saved.version, await asyncio.to_thread(self._decoded, saved.content))

    def _encoded(self, content: T) -> bytes:
        file = io.BytesIO()
        self._form.write(content, file)
        return file.getvalue()

    def _decoded(self, content: bytes) -> T | None:
        return self._form.read(io.BytesIO(content))
