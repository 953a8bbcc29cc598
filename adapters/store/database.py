"""Opens the database and brings its schema up to date."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import aiosqlite
import sqlalchemy as sa
import sqlalchemy.event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from adapters.store.group_commit import FlushedEngine
from adapters.store.sqlite_driver import Driver
from core.model.errors import ConfigurationError, StoreUnavailable, Unavailable

MIGRATIONS = Path(__file__).with_name("migrations")
OUTAGES = ("08", "53", "57P")  # SQLSTATE classes: no connection, no room or too many clients, shutting down or starting
MIGRATING = 0x706C756D62  # PostgreSQL's advisory lock for it; any number that means nothing to others
# A machine that vanished without a word keeps its locks for half a minute, and not for the two hours of the kernel.
KEEPALIVE = "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"  # of the server
DEADLOCK = "40P01"  # SQLSTATE
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
DAMAGE = (
    "The database {file} in PLUMBLINE_DATA_DIR is damaged: {reason}. Stop the bot and put back the last backup: "
    "plumbline restore FILE --force."
)
PATIENCE = 15.0  # seconds that a server is waited for at the start
PAUSE = 0.5  # seconds between two looks whether it is there


def open_database(url: str) -> AsyncEngine:
    """An engine for `sqlite:///path` or `postgresql://…`; nothing is connected yet. Raises ConfigurationError."""
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        # One connection: transactions queue in order, and SQLite never meets a second writer of ours.
        engine = create_async_engine(
            parsed.set(drivername="sqlite+aiosqlite"),
            async_creator=partial(_connected, parsed.database or ":memory:", set[str]()),
            pool_size=1,
            max_overflow=0,
            pool_reset_on_return=None,  # whoever returns it has committed or rolled back
        )
        sqlalchemy.event.listen(engine.sync_engine, "connect", _configure_sqlite)
        sqlalchemy.event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return FlushedEngine(engine)
    return create_async_engine(
        parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args={"options": KEEPALIVE}
    )


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() in ("sqlite", "postgresql"):
            return parsed
    except ArgumentError:
        pass
    # The address itself is not repeated: it may hold a password.
    raise ConfigurationError(
        "PLUMBLINE_DATABASE_URL is no address of a database: use postgresql://USER:PASSWORD@HOST/NAME or sqlite:///PATH."
    )


async def _connected(path: str, slow: set[str]) -> aiosqlite.Connection:
    return await Driver(path, slow)


def truncate_log(url: str) -> None:
    """Move SQLite's write-ahead log into the database: what was deleted stands in the log's old pages until then.

    Does nothing on PostgreSQL, or where there is no database yet. Raises StoreUnavailable if others used it all the time.
    """
    parsed = _parsed(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not path.is_file():
        return
    try:
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as connection:
            is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        is_busy = True
    if is_busy:
        raise StoreUnavailable(f"The log of {path.name} is in use and holds what was deleted: run the command again.")


def _begin_sqlite(connection: sa.Connection) -> None:
    # Left alone, SQLite's module begins with the first INSERT or UPDATE: a savepoint before it would commit by itself,
    # and what was read before it could be out of date.
    driver: Any = connection.connection.driver_connection
    driver.begin()


def _configure_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    # An acknowledged webhook must survive a power cut, not only a crash of the process: the engine flushes the log.
    # What is deleted is overwritten: not every build of SQLite does so by itself.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=0", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@contextmanager
def outages_as(unavailable: type[Unavailable], deadlock: type[Unavailable] | None = None) -> Generator[None]:
    """Raises `unavailable` where the database is not there, is damaged, or has no room left.

    So it does, or `deadlock` if that is given, where another transaction waited for this one, and this one for that.
    """
    try:
        yield
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split()).rstrip(".")
        if is_damaged(error):
            raise unavailable(DAMAGE.format(file="plumbline.sqlite", reason=reason)) from error
        if isinstance(error, DBAPIError) and not _is_outage(error):
            raise
        kind = deadlock if deadlock is not None and _state(error) == DEADLOCK else unavailable
        raise kind(f"The database cannot be read or written: {reason}.") from error


def is_damaged(error: Exception) -> bool:
    """Return whether SQLite found that a file holds no database, or a broken one."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return code & 0xFF in DAMAGED


def _is_outage(error: DBAPIError) -> bool:
    is_gone = isinstance(error, (OperationalError, InterfaceError)) or error.connection_invalidated
    return is_gone or _state(error).startswith((*OUTAGES, DEADLOCK))


def _state(error: Exception) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


async def when_there(engine: AsyncEngine, step: Callable[[], Awaitable[None]]) -> None:
    """A step of the start that may be done twice: a server may be about to start, or drop the connection meanwhile.

    Raises StoreUnavailable after PATIENCE; at once where the database is a file.
    """
    deadline = time.monotonic() + (PATIENCE if engine.dialect.name == "postgresql" else 0)
    while True:
        try:
            return await step()
        except StoreUnavailable:
            if time.monotonic() >= deadline:
                raise
            await asyncio.sleep(PAUSE)


def schema_versions() -> list[str]:
    """Those that this version of Plumbline knows, oldest first: what the names of the migrations begin with."""
    return sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("*.py"))


async def migrate(engine: AsyncEngine) -> None:
    """Bring the schema to the newest version; does nothing when it is there.

    Raises StoreUnavailable; ConfigurationError for the schema of a newer version.
    """
    with outages_as(StoreUnavailable):
        async with engine.begin() as connection:
            await connection.run_sync(_upgrade)


def _upgrade(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":  # several replicas may start at once
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
    version, known = _version(connection), schema_versions()
    if version == known[-1]:
        return
    if version and version not in known:
        raise ConfigurationError(
            f"The database has the schema of a newer Plumbline ({version}; this one knows up to {known[-1]}): install "
            "that version again, or restore a backup from before the upgrade."
        )
    from alembic import command  # a tenth of a second, which only the first start of a version waits for
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _version(connection: sa.Connection) -> str | None:
    """The schema's, as alembic writes it down; None if there is no schema yet."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


async def insert_absent_rows(connection: AsyncConnection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert those rows whose keys are not there already."""
    if rows:
        await connection.execute(_insert_if_absent(table, connection.dialect.name), rows)


async def insert_if_absent(connection: AsyncConnection, table: sa.Table, values: Mapping[str, Any]) -> bool:
    """Insert a row; False, and nothing is changed, if its key already exists."""
    result = await connection.execute(_insert_if_absent(table, connection.dialect.name), values)
    return result.rowcount > 0


@cache
def _insert_if_absent(table: sa.Table, dialect: str) -> sa.Insert:
    """Made once: to make a statement, and to find out that it was compiled before, takes longer than to execute it."""
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(table).on_conflict_do_nothing()


async def upsert(
    connection: AsyncConnection, table: sa.Table, values: Mapping[str, Any], newer: sa.Column[datetime] | None = None
) -> bool:
    """Insert a row, or replace the one with the same primary key. False, and nothing is changed, if that is `newer`."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    key = [column.name for column in table.primary_key]
    changed = {name: value for name, value in values.items() if name not in key}
    inserted = insert(table).values(values)
    is_not_newer = newer <= inserted.excluded[newer.name] if newer is not None else None
    result = await connection.execute(
        inserted.on_conflict_do_update(index_elements=key, set_=changed, where=is_not_newer)
    )
    return result.rowcount > 0
