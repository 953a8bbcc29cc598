"""Empty databases: a SQLite file, and a schema of its own in a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import migrate, open_database

POSTGRES_URL = "PLUMBLINE_TEST_POSTGRES_URL"


@asynccontextmanager
async def database(url: str) -> AsyncIterator[AsyncEngine]:
    """The database at this address, with the newest schema."""
    engine = open_database(url)
    try:
        await migrate(engine)
        yield engine
    finally:
        await engine.dispose()


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'plumbline.sqlite'}"


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server: the one that the environment names, or one of our own."""
    if url := os.environ.get(POSTGRES_URL):
        yield url
        return
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise RuntimeError(f"Install Debian's postgresql, or set {POSTGRES_URL} to the address of a server.")
    with tempfile.TemporaryDirectory(prefix="plumbline-postgres-") as folder:
        yield from _own_server(programs[-1], Path(folder))


def _own_server(programs: Path, folder: Path) -> Iterator[str]:
    """PostgreSQL refuses to run as root, so it runs as the user that Debian made for it."""
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data, port = folder / "data", _free_port()
    options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run(str(programs / "initdb"), "-D", str(data), "-U", "plumbline", "-A", "trust", "-E", "UTF8", "--no-sync")
    run(str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql://plumbline@127.0.0.1:{port}/postgres"
    finally:
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")


@asynccontextmanager
async def new_postgres_database(server: str) -> AsyncIterator[str]:
    """The address of an empty database of its own in a server."""
    name = f"test_{uuid.uuid4().hex}"
    await _administer(server, f"CREATE DATABASE {name}")
    try:
        yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        await _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


async def _administer(server: str, statement: str) -> None:
    engine = open_database(server)
    async with engine.connect() as connection:
        autocommitting = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommitting.execute(sa.text(statement))
    await engine.dispose()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
