"""The schema of an older version is brought up to date, that of the newest is left alone."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import tables
from adapters.store.database import migrate
from core.model.errors import ConfigurationError


async def test_schema_of_version_before_is_completed_and_that_of_this_one_is_not_looked_at(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = await schema(engine)
    await execute(engine, "ALTER TABLE posts DROP COLUMN asked_at")
    await execute(engine, "DROP INDEX ix_tasks_waiting")
    await execute(engine, "DROP TABLE rate_limits")
    await migrate(engine)
    assert await schema(engine) != newest
    monkeypatch.setattr(tables, "LATEST", tables.LATEST + 1)
    await migrate(engine)
    assert await schema(engine) == newest
    assert await execute(engine, "SELECT number FROM schema_version") == [(tables.LATEST,)]


async def schema(engine: AsyncEngine) -> dict[str, Any]:
    """Return the columns and indexes of each table, by name."""

    def read(connection: sa.Connection) -> dict[str, Any]:
        inspector = sa.inspect(connection)
        return {
            table: (
                {(column["name"], str(column["type"]), column["nullable"]) for column in inspector.get_columns(table)},
                {(index["name"], *index["column_names"]) for index in inspector.get_indexes(table)},
            )
            for table in inspector.get_table_names()
        }

    async with engine.connect() as connection:
        return await connection.run_sync(read)


async def test_schema_of_newer_version_is_refused_and_not_touched(engine: AsyncEngine) -> None:
    await execute(engine, "UPDATE schema_version SET number = 9999")
    await execute(engine, "DROP TABLE rate_limits")
    with pytest.raises(ConfigurationError, match=r"newer Plumbline \(9999; this one knows up to \d+\)"):
        await migrate(engine)
    assert "rate_limits" not in await schema(engine)


async def execute(engine: AsyncEngine, statement: str) -> list[tuple[Any, ...]]:
    async with engine.begin() as connection:
        result = await connection.execute(sa.text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []
