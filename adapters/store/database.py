"""Opening of the database, its outages, and statements that the stores of records share."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.store.sqlite import sqlite_engine
from adapters.store.tables import upgrade
from core.model.errors import ConfigurationError, StoreUnavailable, Unavailable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

OUTAGES = ("08", "53", "57P")  # SQLSTATE classes: no connection, no room or too many clients, shutting down or starting
COUNTED = {"preserve_rowcount": True}  # a driver may count no rows of an insert that returns its generated key
# The locks of a machine that vanished are released after half a minute, not after the two hours of the kernel.
KEEPALIVE = "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"  # of the server
DEADLOCK = "40P01"  # SQLSTATE
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
DAMAGE = (
    "The database {file} in PLUMBLINE_DATA_DIR is damaged: {reason}. Stop the bot and put back the last backup: "
    "plumbline restore FILE --force."
)
SERVER_START_TIMEOUT = 15.0  # seconds to wait for a database server at start
PAUSE = 0.5  # seconds between attempts

# Escapes in JSON; those outside the group are NUL and halves of surrogate pairs.
_ESCAPES = re.compile(
    r"(\\[^u]|\\u(?!0000|d[89a-f])[0-9a-f]{4}|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\u[0-9a-f]{4}"
)


def open_database(url: str) -> AsyncEngine:
    """Return an engine for `sqlite:///path` or `postgresql://…`, without connecting. Raises ConfigurationError."""
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return sqlite_engine(parsed, _to_json)
    return create_async_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        connect_args={"options": KEEPALIVE},
        json_serializer=_to_json,
    )


def _to_json(value: Any) -> str:
    """Return the value as JSON in ASCII, with U+FFFD for what PostgreSQL accepts but cannot read again.

    One such row, from the log of an incident or from a webhook, would fail every query that looks into the column.
    """
    text = json.dumps(value)
    if r"\u0000" not in text and r"\ud" not in text:
        return text
    return _ESCAPES.sub(lambda escape: escape[1] or r"\ufffd", text)


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() in ("sqlite", "postgresql"):
            return parsed
    except ArgumentError:
        pass
    # The URL is not repeated, because it may contain a password.
    raise ConfigurationError(
        "PLUMBLINE_DATABASE_URL is not the address of a database: use postgresql://USER:PASSWORD@HOST/NAME or sqlite:///PATH."
    )


def truncate_log(url: str) -> None:
    """Move SQLite's write-ahead log into the database, because old pages of the log still contain deleted data.

    Does nothing on PostgreSQL or if there is no database. Raises StoreUnavailable if others used the database all the
    time.
    """
    parsed = _parsed(url)
    path = Path(parsed.database or "")
    if parsed.get_backend_name() != "sqlite" or not path.is_file():
        return
    try:
        with closing(sqlite3.connect(path, timeout=SERVER_START_TIMEOUT)) as connection:
            is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        is_busy = True
    if is_busy:
        raise StoreUnavailable(f"The log of {path.name} is in use and contains deleted data: run the command again.")


@contextmanager
def outages_as(
    unavailable: type[Unavailable], deadlock: type[Unavailable] | None = None, file: str = "plumbline.sqlite"
) -> Generator[None]:
    """Raise `unavailable` if the database is unreachable, damaged or full.

    A deadlock between two transactions raises `deadlock` if given, otherwise `unavailable`. A damaged SQLite file is named.
    """
    try:
        yield
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split()).rstrip(".")
        if is_damaged(error):
            raise unavailable(DAMAGE.format(file=file, reason=reason)) from error
        if isinstance(error, DBAPIError) and not _is_outage(error):
            raise
        kind = deadlock if deadlock is not None and _state(error) == DEADLOCK else unavailable
        raise kind(f"The database cannot be read or written: {reason}.") from error


def is_damaged(error: Exception) -> bool:
    """Return whether SQLite reported that a file is damaged or not a database."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF in DAMAGED


def _is_outage(error: DBAPIError) -> bool:
    is_gone = isinstance(error, (OperationalError, InterfaceError)) or error.connection_invalidated
    return is_gone or _state(error).startswith((*OUTAGES, DEADLOCK))


def _state(error: Exception) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


@asynccontextmanager
async def transaction(
    engine: AsyncEngine, unavailable: type[Unavailable] = StoreUnavailable, deadlock: type[Unavailable] | None = None
) -> AsyncGenerator[AsyncConnection]:
    """Return a connection with a transaction, whose outages are raised as by `outages_as`."""
    with outages_as(unavailable, deadlock):
        async with engine.begin() as connection:
            yield connection


async def run_when_available(engine: AsyncEngine, step: Callable[[], Awaitable[None]]) -> None:
    """Run a repeatable step at start, and wait for a database server that is starting or drops the connection.

    Raises StoreUnavailable after SERVER_START_TIMEOUT; at once for a database file.
    """
    deadline = time.monotonic() + (SERVER_START_TIMEOUT if engine.dialect.name == "postgresql" else 0)
    while True:
        try:
            return await step()
        except StoreUnavailable:
            if time.monotonic() >= deadline:
                raise
            await asyncio.sleep(PAUSE)


async def migrate(engine: AsyncEngine) -> None:
    """Migrate the schema to the latest version. Does nothing if it is current.

    Raises StoreUnavailable; ConfigurationError for a newer schema.
    """
    async with transaction(engine) as connection:
        await connection.run_sync(upgrade)


@asynccontextmanager
async def migrated(url: str) -> AsyncGenerator[AsyncEngine]:
    """Open a database with the latest schema until the block ends. Raises the errors of `open_database` and `migrate`."""
    engine = open_database(url)
    try:
        await migrate(engine)
        yield engine
    finally:
        await engine.dispose()


@dataclass(eq=False, slots=True)
class Records:
    """The records of one kind, within a transaction.

    What is read, changed or deleted by the values of columns is a cached statement, because building and looking up a
    statement takes longer than executing it.
    """

    _sql: AsyncConnection

    async def _rows(
        self, what: sa.Table | sa.Column[Any], *order: Any, limit: int | None = None, **key: Any
    ) -> sa.CursorResult[Any]:
        """Return the rows with these values of columns: all of a table, or one column. A limit needs an order."""
        return await self._on(sa.select, what, key, order, **({"limit": limit} if order else {}))

    async def _first(self, what: sa.Column[Any], *order: Any, **key: Any) -> Any:
        """Return the column in the first row with these values of columns; None if there is none."""
        return (await self._rows(what, *order, limit=1, **key)).scalar()

    async def _set(self, table: sa.Table, key: Mapping[str, Any], **values: Any) -> int:
        """Change the rows with these values of columns. Returns how many there are."""
        return (await self._on(sa.update, table, key, **values)).rowcount

    async def _delete(self, table: sa.Table, **key: Any) -> None:
        await self._on(sa.delete, table, key)

    async def _on(
        self,
        make: Callable[[Any], Any],
        what: sa.Table | sa.Column[Any],
        key: Mapping[str, Any],
        order: tuple[Any, ...] = (),
        **values: Any,
    ) -> sa.CursorResult[Any]:
        named = {f"key_{name}": value for name, value in key.items()} | values
        return await self._sql.execute(_keyed(make, what, tuple(key), order), named, execution_options=COUNTED)

    async def _list(self, query: sa.Select[Any], **parameters: Any) -> list[Any]:
        return list(await self._sql.scalars(query, parameters))


@cache
def _keyed(
    make: Callable[[Any], Any], what: sa.Table | sa.Column[Any], names: tuple[str, ...], order: tuple[Any, ...]
) -> Any:
    columns = what.columns if isinstance(what, sa.Table) else what.table.columns
    keyed = make(what).where(*(columns[name] == sa.bindparam(f"key_{name}") for name in names))
    return keyed.order_by(*order).limit(sa.bindparam("limit")) if order else keyed


async def insert_if_absent(
    connection: AsyncConnection, table: sa.Table, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> bool:
    """Insert the rows whose keys do not exist. Returns whether there was any."""
    statement = _insert_if_absent(table, connection.dialect.name)
    return (await connection.execute(statement, rows, execution_options=COUNTED)).rowcount > 0


@cache
def _insert_if_absent(table: sa.Table, dialect: str) -> sa.Insert:
    """Return a cached statement, because building and looking up a statement takes longer than executing it."""
    return _insert(table, dialect).on_conflict_do_nothing()


async def upsert(
    connection: AsyncConnection, table: sa.Table, *, newer: sa.Column[datetime] | None = None, **values: Any
) -> bool:
    """Insert a row or replace the one with the same primary key; with the same unique column, if the key is a number.

    Returns False, and changes nothing, if that is `newer`.
    """
    put = _upsert(table, connection.dialect.name, frozenset(values), newer)
    return (await connection.execute(put, values, execution_options=COUNTED)).rowcount > 0


@cache
def _upsert(table: sa.Table, dialect: str, names: frozenset[str], newer: sa.Column[datetime] | None) -> sa.Insert:
    """Return a cached statement, as `_insert_if_absent`."""
    key = [each for each in table.primary_key if each.name in names] or [each for each in table.c if each.unique]
    inserted = _insert(table, dialect)
    changed = {name: inserted.excluded[name] for name in sorted(names - {each.name for each in key})}
    is_not_newer = newer <= inserted.excluded[newer.name] if newer is not None else None
    return inserted.on_conflict_do_update(index_elements=key, set_=changed, where=is_not_newer)


def _insert(table: sa.Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def values_of(record: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a record, for the columns of the same names."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def record_of(kind: type[T], row: Any) -> T:
    """Return the record whose fields are the columns of the same names. Other columns are ignored."""
    return kind(**{field.name: getattr(row, field.name) for field in fields(cast("Any", kind))})
