"""The places where something learned is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.model_formats import ArrayFile, ArrayFormat
from adapters.store.knowledge import SqlLearnedModel
from tests.databases import database, new_postgres_database, sqlite_url
from tests.fakes.clock import FakeClock

PLACES = ("file", "sqlite", pytest.param("postgres", marks=pytest.mark.external))

Opened = Callable[[ArrayFormat[Any], FakeClock], Any]
"""Opens what is kept at one place, as one more process does."""


@asynccontextmanager
async def place(name: str, request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Opened]:
    """An empty one."""
    if name == "file":
        yield lambda form, _: ArrayFile(folder / "data" / "model.npz", form)
    elif name == "sqlite":
        async with database(sqlite_url(folder)) as engine:
            yield lambda form, clock: SqlLearnedModel(engine, "model", form, clock)
    else:
        async with new_postgres_database(request.getfixturevalue("postgres")) as url, database(url) as engine:
            yield lambda form, clock: SqlLearnedModel(engine, "model", form, clock)
