"""The schema of an older version is brought up to date, that of the newest is left alone."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import MIGRATIONS, migrate, schema_versions
from core.model.errors import ConfigurationError


def test_the_versions_are_those_of_the_migrations() -> None:
    migrations = ScriptDirectory(str(MIGRATIONS))
    assert schema_versions() == [each.revision for each in migrations.walk_revisions()][::-1]


async def test_an_older_schema_is_brought_up_to_date_and_the_newest_left_alone(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgraded = list[str]()
    upgrade = command.upgrade

    def counted(config: Config, revision: str) -> None:
        upgraded.append(revision)
        upgrade(config, revision)

    monkeypatch.setattr(command, "upgrade", counted)
    await migrate(engine)
    assert not upgraded
    await execute(engine, "ALTER TABLE ingestions DROP COLUMN left_out")
    await be_of_version(engine, "0018")
    await migrate(engine)
    assert upgraded == ["head"]
    await execute(engine, "SELECT count(left_out) FROM ingestions")


async def test_the_schema_of_a_newer_version_is_not_touched(engine: AsyncEngine) -> None:
    await be_of_version(engine, "9999")
    with pytest.raises(ConfigurationError, match=r"newer Plumbline \(9999; this one knows up to \d{4}\)"):
        await migrate(engine)


async def be_of_version(engine: AsyncEngine, version: str) -> None:
    await execute(engine, f"UPDATE alembic_version SET version_num = '{version}'")


async def execute(engine: AsyncEngine, statement: str) -> None:
    async with engine.begin() as connection:
        await connection.execute(sa.text(statement))
