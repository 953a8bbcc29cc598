"""Databases for the contracts of the stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.contract.databases import database, new_postgres_database, postgres_server, sqlite_url

DATABASES = ("sqlite", pytest.param("postgres", marks=pytest.mark.external))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server."""
    with postgres_server() as address:
        yield address


@pytest.fixture(params=DATABASES)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """An empty database with the newest schema."""
    if request.param == "sqlite":
        async with database(sqlite_url(tmp_path)) as opened:
            yield opened
    else:
        async with new_postgres_database(request.getfixturevalue("postgres")) as url, database(url) as opened:
            yield opened
