"""Empty databases: a SQLite file, and a schema of its own in a PostgreSQL server."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import migrated, open_database

POSTGRES_URL = "PLUMBLINE_TEST_POSTGRES_URL"


@asynccontextmanager
async def database(url: str) -> AsyncIterator[AsyncEngine]:
    """The database at this address, with the newest schema."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        write_schema(Path(parsed.database or ""))
    async with migrated(url) as engine:
        yield engine


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'plumbline.sqlite'}"


def write_schema(path: Path) -> None:
    """Write an empty SQLite file with the newest schema, if there is no file: copied, since migrations take 50 ms."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_migrated_file())


@cache
def _migrated_file() -> bytes:
    async def write(path: Path) -> None:
        async with migrated(f"sqlite:///{path}"):
            pass

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:
        path = Path(folder) / "template.sqlite"
        thread.submit(asyncio.run, write(path)).result()  # the loop of whoever asks may be running
        return path.read_bytes()


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server: the one that the environment names, or one of our own."""
    if url := os.environ.get(POSTGRES_URL):
        yield url
        return
    with own_postgres_server() as server:
        yield server.url


class PostgresServer:
    """A server of our own, to be stopped and started. PostgreSQL refuses to be root: then it is the user Debian made."""

    def __init__(self, programs: Path, folder: Path) -> None:
        """`folder` is empty, and holds all that the server writes."""
        port = _free_port()
        self.url = f"postgresql://plumbline@127.0.0.1:{port}/postgres"
        self._programs, self._folder = programs, folder
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
        self._run("initdb", "-U", "plumbline", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """Return once it takes connections."""
        self._run("pg_ctl", "-o", self._options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        """At once, as in a crash: what was under way is undone when it is started again."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *arguments]
        subprocess.run(command, check=True, user=self._user, cwd=self._folder, stdout=subprocess.DEVNULL)


@contextmanager
def own_postgres_server() -> Iterator[PostgresServer]:
    """A server that runs. Whoever stops it in the block starts it again."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise RuntimeError(f"Install Debian's postgresql, or set {POSTGRES_URL} to the address of a server.")
    with tempfile.TemporaryDirectory(prefix="plumbline-postgres-") as folder:
        server = PostgresServer(programs[-1], Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


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
