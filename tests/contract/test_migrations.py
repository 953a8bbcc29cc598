"""The schema of an older version is brought up to date, that of the newest is left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import migrate
from adapters.store.store import SqlStore
from core.model.errors import ConfigurationError
from core.model.prediction import Estimator
from tests.contract.records import prediction
from tests.databases import database, sqlite_url

OLD = Path(__file__).parents[1] / "scenario" / "previous_version" / "plumbline.sql"  # schema 0006, with rows


async def test_an_older_schema_is_brought_up_to_date_and_the_newest_left_alone(engine: AsyncEngine) -> None:
    newest = await schema(engine)
    await execute(engine, "ALTER TABLE ingestions DROP COLUMN left_out")
    await execute(engine, "DROP INDEX ix_tasks_waiting")
    await execute(engine, "DROP TABLE lanes")
    await migrate(engine)
    assert await schema(engine) != newest, "a database of the newest version is not looked at"
    await be_of_version(engine, "0017")
    await migrate(engine)
    assert await schema(engine) == newest
    assert await execute(engine, "SELECT version_num FROM alembic_version") == [("0020",)]


async def test_the_first_versions_are_converted(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with closing(sqlite3.connect(tmp_path / "plumbline.sqlite")) as connection:
        connection.executescript(OLD.read_text(encoding="utf-8"))
        started = connection.execute("SELECT key FROM tasks WHERE started ORDER BY key").fetchall()
        waiting = connection.execute("SELECT key FROM tasks WHERE NOT started ORDER BY key").fetchall()
    assert started
    assert waiting
    async with database(url) as upgraded:
        assert await execute(upgraded, "SELECT key FROM tasks WHERE ended_at IS NOT NULL ORDER BY key") == started
        assert await execute(upgraded, "SELECT key FROM tasks WHERE ended_at IS NULL ORDER BY key") == waiting
        assert await execute(upgraded, "SELECT id FROM replicas") == [("local",)]
        found = await schema(upgraded)
    (tmp_path / "new").mkdir()
    async with database(sqlite_url(tmp_path / "new")) as new:
        assert found == await schema(new)


async def test_the_estimators_of_the_first_predictions_are_found(tmp_path: Path) -> None:
    made = prediction(estimator_version="7")
    async with database(sqlite_url(tmp_path)) as first:
        async with SqlStore(first).transaction() as transaction:
            await transaction.predictions.add(made)
        await execute(first, "DROP INDEX ix_predictions_estimator")
        await execute(first, "ALTER TABLE predictions DROP COLUMN estimator_version")
        await execute(first, "CREATE INDEX ix_predictions_kind ON predictions (kind)")
        await execute(first, "ALTER TABLE tasks ADD COLUMN started BOOLEAN NOT NULL DEFAULT FALSE")
        await execute(first, "CREATE INDEX ix_tasks_unstarted ON tasks (started)")
        await be_of_version(first, "0002")
    async with database(sqlite_url(tmp_path)) as upgraded, SqlStore(upgraded).transaction() as transaction:
        assert await transaction.predictions.estimators() == [Estimator(made.kind, made.engine, "7")]


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


async def test_the_schema_of_a_newer_version_is_not_touched(engine: AsyncEngine) -> None:
    await be_of_version(engine, "9999")
    with pytest.raises(ConfigurationError, match=r"newer Plumbline \(9999; this one knows up to \d{4}\)"):
        await migrate(engine)


async def be_of_version(engine: AsyncEngine, version: str) -> None:
    await execute(engine, f"UPDATE alembic_version SET version_num = '{version}'")


async def execute(engine: AsyncEngine, statement: str) -> list[tuple[Any, ...]]:
    async with engine.begin() as connection:
        result = await connection.execute(sa.text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []
