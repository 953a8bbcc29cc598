"""Opens the database and brings its schema up to date."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import sqlalchemy.event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

MIGRATIONS = Path(__file__).with_name("migrations")
BUSY_TIMEOUT = 10_000  # milliseconds to wait for another process that writes to the same SQLite file


def open_database(url: str) -> AsyncEngine:
    """An engine for `sqlite:///path` or `postgresql://…`; nothing is connected yet."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        # One connection: transactions queue in order, and SQLite never meets a second writer of ours.
        engine = create_async_engine(parsed.set(drivername="sqlite+aiosqlite"), pool_size=1, max_overflow=0)
        sqlalchemy.event.listen(engine.sync_engine, "connect", _configure_sqlite)
        return engine
    return create_async_engine(parsed.set(drivername="postgresql+asyncpg"), pool_pre_ping=True)


def _configure_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    # FULL, because an acknowledged webhook must survive a power cut, not only a crash of the process.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY_TIMEOUT}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


async def migrate(engine: AsyncEngine) -> None:
    """Bring the schema to the newest version; does nothing when it is there."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))

    def upgrade(connection: sa.Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    async with engine.begin() as connection:
        await connection.run_sync(upgrade)


async def insert_if_absent(connection: AsyncConnection, table: sa.Table, values: Mapping[str, Any]) -> bool:
    """Insert a row; False, and nothing is changed, if its key is there already."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    result = await connection.execute(insert(table).values(values).on_conflict_do_nothing())
    return result.rowcount > 0


async def upsert(connection: AsyncConnection, table: sa.Table, values: Mapping[str, Any]) -> None:
    """Insert a row, or replace the one with the same primary key."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    key = [column.name for column in table.primary_key]
    changed = {name: value for name, value in values.items() if name not in key}
    await connection.execute(insert(table).values(values).on_conflict_do_update(index_elements=key, set_=changed))
