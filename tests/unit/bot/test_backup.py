"""A backup is the workspace as of one moment; a restore is that, or nothing."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import json
import os
import sqlite3
import tarfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from adapters.store.store import LocalLocks, SqlStore
from adapters.store.tables import LATEST
from bot.commands.records import run_backup, run_restore
from bot.config.settings import Settings, keep_private
from bot.work.schedules import run_forget
from core.model.conversation import Place, Platform, Speaker, Turn, turn_key
from core.model.errors import ConfigurationError, PlumblineError
from core.ports import Task
from tests.databases import database

QUIET = Console(quiet=True)


def settings(folder: Path) -> Settings:
    return Settings.model_validate({"PLUMBLINE_DATA_DIR": folder})


def files_with(folder: Path, text: bytes) -> list[str]:
    return [path.name for path in folder.glob("*.sqlite*") if text in path.read_bytes()]


async def workspace(folder: Path, *keys: str) -> None:
    """A workspace with these tasks, an index and a model."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    async with database(f"sqlite:///{folder / 'plumbline.sqlite'}") as engine:
        for key in keys:
            async with SqlStore(engine).transaction() as transaction:
                await transaction.tasks.add(Task(key, "answer", key, {}))
    (folder / "encoder.npz").write_bytes(b"an encoder")
    (folder / "pages.npz").write_bytes(f"learned of {folder.name}".encode())
    (folder / "index" / "segments").mkdir(parents=True, exist_ok=True)
    (folder / "index" / "segments" / "1").write_bytes(b"a segment")


async def tasks(folder: Path) -> list[str]:
    async with (
        database(f"sqlite:///{folder / 'plumbline.sqlite'}") as engine,
        SqlStore(engine).transaction() as transaction,
    ):
        return [task.key for task in await transaction.tasks.claim("us", 10_000)]


async def test_what_is_restored_is_what_was_backed_up(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home, "a", "b")
    run_backup(settings(home), file, QUIET)
    run_restore(settings(other), file, QUIET, force=False)
    assert await tasks(other) == ["a", "b"]
    assert (other / "encoder.npz").read_bytes() == b"an encoder"
    assert (other / "pages.npz").read_bytes() == b"learned of home"
    assert (other / "index" / "segments" / "1").read_bytes() == b"a segment"


async def test_the_zeros_into_which_an_index_grows_take_no_room_when_it_is_restored(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home)
    with (home / "index" / "segments" / "2").open("wb") as segment:
        segment.write(b"vectors")
        segment.truncate(10_000_000)
    run_backup(settings(home), file, QUIET)
    run_restore(settings(other), file, QUIET, force=False)
    restored = other / "index" / "segments" / "2"
    assert restored.read_bytes() == b"vectors".ljust(10_000_000, b"\0")
    assert restored.stat().st_blocks * 512 < 1_000_000


@pytest.mark.parametrize("named", ["U1", "slack:U1"], ids=["as in the chat", "as in the audit log"])
async def test_somebody_is_forgotten_in_a_workspace_that_was_restored_before_a_bot_runs_on_it(
    tmp_path: Path, named: str
) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home)
    async with database(f"sqlite:///{home / 'plumbline.sqlite'}") as engine:
        for person in ("U1", "U2"):
            async with SqlStore(engine).transaction() as transaction:
                await transaction.tasks.add(Task(f"asked by {person}", "answer", "q", {"asker": {"id": person}}))
                await transaction.tasks.end([f"asked by {person}"])
    run_backup(settings(home), file, QUIET)
    run_restore(settings(other), file, QUIET, force=False)
    assert not (other / "workflows.sqlite").exists()
    await run_forget(settings(other), named, "", QUIET)
    async with (
        database(f"sqlite:///{other / 'plumbline.sqlite'}") as engine,
        SqlStore(engine).transaction() as transaction,
    ):
        assert [await transaction.tasks.is_known(f"asked by {person}") for person in ("U1", "U2")] == [False, True]


async def test_what_is_forgotten_stands_in_no_file_of_the_database_while_a_bot_has_it_open(tmp_path: Path) -> None:
    await workspace(tmp_path)
    async with database(f"sqlite:///{tmp_path / 'plumbline.sqlite'}") as engine:
        for number in range(50):
            key, place = f"q{number}", Place(Platform.SLACK, "C0ASK", "17.25", "T0MARI")
            async with SqlStore(engine).transaction() as transaction:
                await transaction.tasks.add(Task(key, "answer", key, {"asker": {"id": "U1"}, "text": "my own secret"}))
                await transaction.tasks.end([key])
                said = Turn(Speaker.PERSON, "my own secret")
                await transaction.conversations.put(turn_key(key, Speaker.PERSON), place, said, datetime.now(UTC))
        await run_forget(settings(tmp_path), "U1", "", QUIET)
        assert await asyncio.to_thread(files_with, tmp_path, b"my own secret") == []


async def test_a_backup_in_the_middle_of_a_storm_holds_every_event_up_to_some_moment(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home)
    locks = LocalLocks(str(home / "plumbline.sqlite"))
    await locks.keep("a bot")
    acknowledged = 0
    saved, raging = asyncio.Event(), asyncio.Event()

    async def storm() -> None:
        nonlocal acknowledged
        async with database(f"sqlite:///{home / 'plumbline.sqlite'}") as engine:
            while not saved.is_set():
                async with SqlStore(engine).transaction() as transaction:
                    await transaction.tasks.add(Task(str(acknowledged), "answer", "q", {"text": "x" * 5_000}))
                acknowledged += 1
                if acknowledged == 50:
                    raging.set()

    storming = asyncio.create_task(storm())
    await raging.wait()
    before = acknowledged
    await asyncio.to_thread(run_backup, settings(home), file, QUIET)
    saved.set()
    await storming
    run_restore(settings(other), file, QUIET, force=False)
    restored = await tasks(other)
    assert restored == [str(number) for number in range(len(restored))]
    assert before <= len(restored) <= acknowledged
    assert not (other / "index").exists(), "a bot held it open"
    await locks.close()


async def test_a_workspace_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home, "a")
    await workspace(other, "b")
    run_backup(settings(home), file, QUIET)
    with pytest.raises(PlumblineError, match="Use --force"):
        run_restore(settings(other), file, QUIET, force=False)
    assert await tasks(other) == ["b"]
    run_restore(settings(other), file, QUIET, force=True)
    assert await tasks(other) == ["a"]


async def test_a_backup_overwrites_another_file_only_by_force(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "backup"
    await workspace(home)
    file.write_bytes(b"something else")
    with pytest.raises(PlumblineError, match="--force"):
        run_backup(settings(home), file, QUIET)
    assert file.read_bytes() == b"something else"
    run_backup(settings(home), file, QUIET, force=True)
    assert file.read_bytes() != b"something else"


async def test_nothing_is_restored_while_a_bot_works_there(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "backup"
    await workspace(home, "a")
    run_backup(settings(home), file, QUIET)
    locks = LocalLocks(str(home / "plumbline.sqlite"))
    await locks.keep("a bot")
    with pytest.raises(PlumblineError, match="Stop it"):
        run_restore(settings(home), file, QUIET, force=True)
    await locks.close()


@pytest.mark.parametrize("damage", ["cut", "changed", "no backup"])
async def test_a_damaged_backup_changes_nothing(tmp_path: Path, damage: str) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home, "a")
    await workspace(other, "b")
    run_backup(settings(home), file, QUIET)
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        rewrite(file, "encoder.npz", b"another encoder")
    else:
        file.write_bytes(b"no backup")
    with pytest.raises(PlumblineError, match="Nothing was restored"):
        run_restore(settings(other), file, QUIET, force=True)
    assert await tasks(other) == ["b"]


def rewrite(file: Path, name: str, content: bytes) -> None:
    folder = file.with_suffix(".unpacked")
    with tarfile.open(file) as archive:
        archive.extractall(folder)
    (folder / name).write_bytes(content)
    with tarfile.open(file, "w:gz") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.add(path, path.relative_to(folder).as_posix())


async def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "backup"
    await workspace(home, "a")
    with closing(sqlite3.connect(home / "plumbline.sqlite")) as connection:
        connection.execute("UPDATE schema_version SET number = 9999")
        connection.commit()
    run_backup(settings(home), file, QUIET)
    with pytest.raises(PlumblineError, match="newer Plumbline"):
        run_restore(settings(tmp_path / "other"), file, QUIET, force=False)


def test_there_must_be_something_to_back_up_and_a_server_has_tools_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="to back up"):
        run_backup(settings(tmp_path), tmp_path / "backup", QUIET)
    on_a_server = Settings.model_validate({"PLUMBLINE_DATABASE_URL": "postgresql://db/plumbline"})
    with pytest.raises(ConfigurationError, match="pg_dump"):
        run_backup(on_a_server, tmp_path / "backup", QUIET)


def _archive(file: Path, members: dict[str, bytes], **manifest: object) -> None:
    said = {"format": 1, "plumbline": "1", "made_at": "now", "schema": LATEST, **manifest}
    said.setdefault("files", {name: hashlib.sha256(content).hexdigest() for name, content in members.items()})
    with tarfile.open(file, "w:gz") as archive:
        for name, content in {"manifest.json": json.dumps(said).encode(), **members}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize(
    ("members", "manifest"),
    [
        ({}, {}),
        ({"plumbline.sqlite": b"no database"}, {}),
        ({"plumbline.sqlite": b""}, {}),
        ({"plumbline.sqlite": b""}, {"made_at": ""}),
        ({}, {"files": {"../evil": "0"}}),
        ({}, {"files": {"": "0"}}),
        ({}, {"files": {"/etc/passwd": "0"}}),
        ({}, {"files": ["plumbline.sqlite"]}),
        ({}, {"files": {"plumbline.sqlite": "0"}}),
        ({}, {"format": 2}),
        ({"index": b"", "index/a": b"", "plumbline.sqlite": b""}, {}),
    ],
)
def test_a_damaged_archive_is_refused_with_one_sentence(
    tmp_path: Path, members: dict[str, bytes], manifest: dict[str, object]
) -> None:
    _archive(tmp_path / "file", members, **manifest)
    with pytest.raises(PlumblineError, match=r"^\S+/file [^\n]+\.$"):
        run_restore(settings(tmp_path / "home"), tmp_path / "file", QUIET, force=True)
    assert not (tmp_path / "home" / "plumbline.sqlite").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08" + b"\0" * 40, b"[" * 100_000])
def test_what_is_no_archive_is_refused_with_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(PlumblineError, match=r"^\S+/file [^\n]+\.$"):
        run_restore(settings(tmp_path / "home"), tmp_path / "file", QUIET, force=True)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_takes_nothing_is_named(tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _archive(tmp_path / "file", {"plumbline.sqlite": b"x"})

    def full(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("bot.commands.records._write_with_holes", full)
    with pytest.raises(PlumblineError, match=os.strerror(code)):
        run_restore(settings(tmp_path / "home"), tmp_path / "file", QUIET, force=True)


async def test_backups_and_restored_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    await workspace(home, "a")
    run_backup(settings(home), file, QUIET)
    run_restore(settings(other), file, QUIET, force=True)
    assert not file.stat().st_mode & 0o077
    assert not other.stat().st_mode & 0o077
    home.chmod(0o755)
    (home / "plumbline.sqlite").chmod(0o644)
    assert keep_private(home) == []
    assert not any(path.stat().st_mode & 0o077 for path in (home, home / "plumbline.sqlite", home / "index"))
