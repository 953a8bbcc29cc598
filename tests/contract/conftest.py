"""Databases for the contracts of the stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.store import SqlStore
from core.ports import Store
from tests.databases import database, new_postgres_database, sqlite_url
from tests.fakes.store import InMemoryStore
from tests.templates import templates_compiled_once

__all__ = ["templates_compiled_once"]

DATABASES = ("sqlite", pytest.param("postgres", marks=pytest.mark.external))


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture(params=DATABASES)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """An empty database with the newest schema."""
    if request.param == "sqlite":
        async with database(sqlite_url(tmp_path)) as opened:
            yield opened
    else:
        async with new_postgres_database(request.getfixturevalue("postgres")) as url, database(url) as opened:
            yield opened


@pytest.fixture(params=["fake", *DATABASES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty one of each kind."""
    if request.param == "fake":
        yield InMemoryStore()
    elif request.param == "sqlite":
        async with database(sqlite_url(tmp_path)) as opened:
            yield SqlStore(opened)
    else:
        async with new_postgres_database(request.getfixturevalue("postgres")) as url, database(url) as opened:
            kept = SqlStore(opened)
            yield kept
            await kept.locks.close()
