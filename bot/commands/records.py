"""The commands that need only the database: `plumbline status`, `dead-letters`, `postmortem`, `audit`, `backup` and `restore`.

A backup is the embedded workspace in one file, even while the bot runs. The workflow database is copied before the state, so
every workflow in it has its task in the state, and missing ones are started again. The index is copied only while no bot has
it open; otherwise the first ingestion rebuilds it.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adapters.clock import SystemClock
from adapters.store.database import migrated
from adapters.store.store import SqlStore
from bot.config.settings import Settings, keep_private
from core import VERSION
from core.incidents.handover import closed_chats
from core.incidents.postmortem import as_markdown, draft_postmortem
from core.model.audit import PLUMBLINE, Act, AuditEntry, audit_entry, since
from core.model.errors import ConfigurationError, PlumblineError
from core.ports import Clock, DeadLetter, Store
from handlers.questions.redeliver import ask_to_redeliver, drop_dead_letter
from handlers.questions.show_home import MAX_READ, format_incidents, format_source

FORMAT = 1
MANIFEST = "manifest.json"
STATE, WORKFLOWS = "plumbline.sqlite", "workflows.sqlite"
DAMAGE = (
    *(gzip.BadGzipFile, EOFError, tarfile.TarError, zlib.error, sqlite3.Error, RecursionError),
    *(ValueError, KeyError, IndexError, AttributeError, TypeError),
)
MODELS = ("encoder.npz", "owners.npz", "pages.npz")
INDEX = "index"
BLOCK = 64 * 1024  # bytes
WHOLE = (STATE, f"{STATE}-wal", f"{STATE}-shm", WORKFLOWS, f"{WORKFLOWS}-wal", f"{WORKFLOWS}-shm", *MODELS, INDEX)


def run_backup(settings: Settings, file: Path, out: Console, *, force: bool = False) -> None:
    """Write the workspace to a file, replacing an existing one only with `force`.

    Raises ConfigurationError or PlumblineError.
    """
    folder = _embedded(settings)
    if file.exists() and not force:
        raise PlumblineError(f"{file} already exists. Choose another name, or use --force to replace it.")
    if not (folder / STATE).exists():
        raise ConfigurationError(f"Nothing to back up in {folder}: set PLUMBLINE_DATA_DIR to the bot's data folder.")
    with (
        tempfile.TemporaryDirectory(dir=file.resolve().parent, prefix=".plumbline-backup-") as name,
        _exclusive(folder) as is_alone,
    ):
        copy = Path(name)
        for database in _files(folder, (WORKFLOWS, STATE)):
            _copy_database(folder / database, copy / database)
        # The index and the encoder belong together, and a running bot may be writing them.
        derived = _files(folder, (*MODELS, INDEX)) if is_alone else {}
        finished = copy / "finished"
        _pack(_files(copy, (WORKFLOWS, STATE)) | derived, finished)
        finished.chmod(0o600)
        finished.replace(file)
    size = file.stat().st_size / 1e6
    extent = (
        "with the index"
        if is_alone
        else "without the index, because a running bot holds it open; ingestion rebuilds it"
    )
    out.print(f"{file}: {size:.1f} MB, {extent}.", highlight=False)


def run_restore(settings: Settings, file: Path, out: Console, *, force: bool) -> None:
    """Restore the workspace from a backup. Raises ConfigurationError or PlumblineError."""
    folder = _embedded(settings)
    try:
        made_at = _restore(folder, file, force=force)
    except OSError as error:  # no permission, or the disk is full
        raise PlumblineError(f"{file} cannot be restored to {folder}: {error.strerror or error}.") from error
    out.print(f"{folder} is restored to its state of {made_at}. Start the bot.", highlight=False)


def _restore(folder: Path, file: Path, *, force: bool) -> str:
    """Restore the workspace, and return the time of the backup."""
    folder.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder) as is_alone, tempfile.TemporaryDirectory(dir=folder, prefix=".restore-") as name:
        if not is_alone:
            raise PlumblineError(f"A bot is using {folder}. Stop it, then restore.")
        if (folder / STATE).exists() and not force:
            raise PlumblineError(f"{folder} already holds a workspace. Use --force to replace it.")
        restored = Path(name)
        manifest = _unpack(file, restored)
        if (folder / INDEX).is_dir():
            shutil.rmtree(folder / INDEX)
        for part in WHOLE:
            (folder / part).unlink(missing_ok=True)
        for part in WHOLE:  # the state last: without it, the workspace counts as empty
            if part != STATE and (restored / part).exists():
                (restored / part).replace(folder / part)
        (restored / STATE).replace(folder / STATE)
    keep_private(folder)
    return str(manifest["made_at"])


def _embedded(settings: Settings) -> Path:
    if settings.database_url:
        raise ConfigurationError(
            "PLUMBLINE_DATABASE_URL names a separate database. Back it up with its own tools, such as pg_dump for PostgreSQL."
        )
    return settings.data_dir


def is_open(settings: Settings) -> bool:
    """Return whether a running bot holds the embedded workspace open."""
    if settings.database_url or not settings.data_dir.is_dir():
        return False
    with _exclusive(settings.data_dir) as is_alone:
        return not is_alone


@contextmanager
def _exclusive(folder: Path) -> Generator[bool]:
    """Yield whether no bot is running on the workspace. If so, none can start until the block ends."""
    with (folder / f"{STATE}.lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _copy_database(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of the database, even while others write to it."""
    try:
        with closing(sqlite3.connect(source, timeout=30)) as read, closing(sqlite3.connect(target)) as written:
            read.backup(written)
    except sqlite3.Error as error:
        raise PlumblineError(f"{source} cannot be copied: {error}.") from error


def _files(folder: Path, parts: Iterable[str]) -> dict[str, Path]:
    """Return the files of these parts of a workspace, by their names in it."""
    paths = (path for part in parts for path in (folder / part, *sorted((folder / part).rglob("*"))))
    return {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}


def _pack(files: Mapping[str, Path], target: Path) -> None:
    manifest = {
        "format": FORMAT,
        "plumbline": VERSION,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "schema": _schema(files[STATE]),
        "files": {name: _digest(path) for name, path in files.items()},
    }
    with target.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        text = json.dumps(manifest, indent=2).encode()
        entry = tarfile.TarInfo(MANIFEST)
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
        for name, path in files.items():
            archive.add(path, name, recursive=False)
        archive.close()
        file.flush()
        os.fsync(file.fileno())


def _unpack(file: Path, folder: Path) -> dict[str, Any]:
    """Extract every file of the manifest, check its digest, and return the manifest."""
    try:
        with tarfile.open(file, "r:gz") as archive:
            manifest: dict[str, Any] = json.loads(_content(archive, MANIFEST).read())
            if manifest["format"] != FORMAT:
                raise PlumblineError(f"{file} was written by another version of Plumbline: {manifest['plumbline']}.")
            for name, digest in manifest["files"].items():
                target = folder / _inside(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                _write_with_holes(_content(archive, name), target)
                if _digest(target) != digest:
                    raise PlumblineError(
                        f"{file} is damaged: the checksum of {name} does not match. Nothing was restored."
                    )
            if STATE not in manifest["files"]:
                raise PlumblineError(f"{file} does not contain {STATE}. Nothing was restored.")
            _refuse_newer(manifest)
            _check_databases(folder, manifest)
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:200]
        raise PlumblineError(f"{file} is not a backup, or is damaged: {reason}. Nothing was restored.") from error
    return manifest


def _write_with_holes(content: IO[bytes], target: Path) -> None:
    """Write a file of which blocks of zeros take no room on the disk. Most of an index, which grows into them, is zeros."""
    with target.open("wb") as file:
        while block := content.read(BLOCK):
            if block != bytes(len(block)):
                file.write(block)
            else:
                file.seek(len(block), os.SEEK_CUR)
        file.truncate()


def _check_databases(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise ValueError or sqlite3.Error if a database is damaged or is not the one that the manifest describes."""
    for name in (STATE, WORKFLOWS):
        if (folder / name).exists():
            with closing(sqlite3.connect(folder / name)) as connection:
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise ValueError(f"{name}: {verdict}")
    if _schema(folder / STATE) != manifest["schema"] or not manifest["made_at"]:
        raise ValueError(f"{STATE} is not the database of its manifest")


def _refuse_newer(manifest: dict[str, Any]) -> None:
    from adapters.store.tables import LATEST

    if manifest["schema"] > LATEST:
        raise PlumblineError(
            f"The backup was written by a newer Plumbline ({manifest['plumbline']}): install that version, then restore."
        )


def _content(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    content = archive.extractfile(name)
    if content is None:
        raise ValueError(f"{name} is not a file")
    return content


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[0] not in WHOLE:
        raise ValueError(f"{name} does not belong in a workspace")
    return path


def _schema(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (number,) = connection.execute("SELECT number FROM schema_version").fetchone()
        return number


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


MAX_SHOWN = 200  # dead letters
PART = 500  # audit entries per read
NOTHING_READ = "No source was read yet. Run `plumbline ingest`."
NO_SUCH = "There is no dead letter {intent}. Run `plumbline dead-letters list` to list them."
_ENTRY = TypeAdapter(AuditEntry)


async def run_status(settings: Settings, out: Console) -> None:
    """Print the open incidents, and when each source was last read."""
    async with open_store(settings) as store, store.transaction() as transaction:
        opened = await transaction.incidents.latest_open(MAX_READ)
        ingestions = await transaction.ingestions.all()
        closed = closed_chats(await transaction.dead_letters.waiting())
    sources = [format_source(each) for each in ingestions] or [NOTHING_READ]
    out.print("\n".join([*format_incidents(opened), *sources, *closed]), highlight=False, markup=False, soft_wrap=True)


async def run_list(settings: Settings, out: Console, *, as_json: bool) -> None:
    """Print dead letters, newest first."""
    async with open_store(settings) as store:
        _print(await _latest(store), out, as_json=as_json)


async def run_retry(settings: Settings, intents: Sequence[str], out: Console, *, every: bool) -> None:
    """Ask the running bot to retry the given dead letters, or `every` one."""
    async with open_store(settings) as store:
        wanted = [letter.intent for letter in await _latest(store)] if every else intents
        for intent in wanted:
            if not await ask_to_redeliver(intent, store=store):
                raise PlumblineError(NO_SUCH.format(intent=intent))
            out.print(f"The running bot retries {intent}.", highlight=False, markup=False)


async def run_drop(settings: Settings, intents: Sequence[str], out: Console) -> None:
    """Drop the given dead letters."""
    async with open_store(settings) as store:
        for intent in intents:
            if not await drop_dead_letter(intent, SystemClock().now(), store=store):
                raise PlumblineError(NO_SUCH.format(intent=intent))
            out.print(f"{intent} is dropped.", highlight=False, markup=False)


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncGenerator[SqlStore]:
    """Open the database of the workspace, for commands that need nothing else."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    async with migrated(settings.database) as engine:
        yield SqlStore(engine)


async def _latest(store: Store) -> list[DeadLetter]:
    async with store.transaction() as transaction:
        return await transaction.dead_letters.latest(MAX_SHOWN)


def _print(letters: Sequence[DeadLetter], out: Console, *, as_json: bool) -> None:
    rows = [
        {
            "intent": letter.intent,
            "place": f"{letter.place.platform} {letter.place.channel}",
            "reason": letter.reason,
            "at": letter.at.isoformat(timespec="seconds"),
        }
        for letter in letters
    ]
    if as_json:
        for row in rows:
            out.print(json.dumps(row), highlight=False, markup=False, soft_wrap=True)
        return
    if not rows:
        out.print("There are no dead letters. Every message was delivered.")
        return
    table = Table("intent", "place", "reason", "at")
    for row in rows:
        table.add_row(*row.values())
    out.print(table)


async def run_postmortem(settings: Settings, incident_id: str) -> None:
    """Print the draft to standard output. Raises PlumblineError for an unknown incident."""
    async with open_store(settings) as store, store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"There is no incident {incident_id}. The local page shows the ids of incidents.")
    sys.stdout.write(as_markdown(draft_postmortem(incident)))


async def run_audit(settings: Settings, from_when: str, out: Console, *, as_json: bool) -> None:
    """Print the entries from a time on, oldest first; with `as_json`, one JSON object per line."""
    begin = since(from_when, SystemClock().now())
    async with open_store(settings) as store:
        async for entry in _entries(store, begin):
            if as_json:
                out.file.write(_ENTRY.dump_json(entry, ensure_ascii=True).decode() + "\n")
            else:
                out.print(Text(_line(entry)), soft_wrap=True)


async def record_start(settings: Settings, replica: str, *, store: Store, clock: Clock) -> None:
    """Record the configuration that `replica` starts with: the SHA-256 of plumbline.yaml, as `sha256sum` prints it."""
    digest = hashlib.sha256(settings.config.read_bytes()).hexdigest() if settings.config else "no plumbline.yaml"
    entry = audit_entry(
        f"configured:{replica}",
        clock.now(),
        Act.CONFIGURED,
        PLUMBLINE,
        digest,
        detail=f"Plumbline {VERSION}",
    )
    async with store.transaction() as transaction:
        await transaction.audit.add(entry)


async def _entries(store: Store, begin: datetime) -> AsyncIterator[AuditEntry]:
    after = 0
    while True:
        async with store.transaction() as transaction:
            part = await transaction.audit.since(begin, after, PART)
        if not part:
            return
        for each in part:
            yield each.entry
        after = part[-1].number


def _line(entry: AuditEntry) -> str:
    parts = [f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.actor, entry.act, entry.detail, entry.subject]
    parts += [f"in {entry.place}"] if entry.place else []
    parts += [f"from {', '.join(entry.documents)}"] if entry.documents else []
    return "  ".join(part for part in parts if part)
