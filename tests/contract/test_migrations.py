"""The schema of an older version is brought up to date, that of the newest is left alone."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
import sqlalchemy.event
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store import tables
from adapters.store.database import migrate
from adapters.store.store import SqlStore
from core.model.badge import PredictionKind
from core.model.errors import ConfigurationError
from tests.contract.records import prediction


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


async def test_labels_of_version_1_count_and_so_do_those_that_its_replicas_still_store(engine: AsyncEngine) -> None:
    made = [prediction(f"p{number}", number) for number in range(3)]
    async with SqlStore(engine).transaction() as transaction:
        for each in made:
            await transaction.predictions.add(each)
    outcome = "INSERT INTO outcomes VALUES ('{}', 'slack:U1', true, '2026-01-01 00:00:00', '')"
    on_table = " ON outcomes" if engine.dialect.name == "postgresql" else ""
    for statement in (
        f"DROP TRIGGER prediction_is_judged{on_table}",
        *(["DROP FUNCTION prediction_is_judged"] if on_table else []),
        "DROP INDEX ix_predictions_judged",
        "ALTER TABLE predictions DROP COLUMN judged",
        "UPDATE schema_version SET number = 1",
        outcome.format("p0"),
    ):
        await execute(engine, statement)
    await migrate(engine)
    await execute(engine, outcome.format("p2"))
    async with SqlStore(engine).transaction() as transaction:
        assert len(await transaction.predictions.verdicts(made[0].estimator, 3)) == 2


async def test_latest_predictions_and_verdicts_are_read_from_an_index_and_never_by_counting(
    engine: AsyncEngine,
) -> None:
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL plans by the number of rows, and reads an empty table as a whole.")
    asked = list[tuple[str, Any]]()

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    estimator = prediction().estimator
    async with SqlStore(engine).transaction() as transaction:
        await transaction.predictions.add(prediction())
        sqlalchemy.event.listen(engine.sync_engine, "before_cursor_execute", note)
        await transaction.predictions.verdicts(estimator, 9)
        await transaction.predictions.recent(PredictionKind.OWNER, 9)
        assert await transaction.predictions.estimators() == [estimator]
        sqlalchemy.event.remove(engine.sync_engine, "before_cursor_execute", note)
    async with engine.connect() as connection:
        plans = [
            row.detail
            for statement, parameters in asked
            for row in await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]
    of_table = [plan for plan in plans if "predictions" in plan]
    assert of_table
    assert all(plan.startswith("SEARCH predictions USING") for plan in of_table), plans
