"""What the console script does where the machine is not as it should be."""

from __future__ import annotations

import errno
import os
import platform
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adapters.store.database import open_database
from adapters.store.store import SqlStore
from bot import __main__ as script
from bot import cli, quick_imports
from bot.work import engine
from core.model.errors import PlumblineError, StoreUnavailable

ROOT = Path(__file__).parents[3]
UNDAUNTED = r"""
import sys
from bot.__main__ import write_plainly
write_plainly()
from rich.console import Console
Console().print("\u25cf 82 % \u2013 3 \xd7 \u201cslow\u201d \u2026 \U0001f642")
Console(stderr=True).print("\u25cf red")
"""
ALLOCATING = """
import ctypes, threading
from bot.quick_imports import quick_imports
with quick_imports():
    import uuid
together = threading.Barrier(8)
def allocate():
    together.wait()
    kept = [bytes(5_000) for _ in range(100)]
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.parametrize(
    "environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_a_terminal_that_lacks_a_character_does_not_end_a_command(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", UNDAUNTED],
        env={"PATH": os.defpath} | environment,
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b'* 82 % - 3 x "slow" ... ?\n', b"* red\n")


def test_what_a_terminal_can_show_is_written_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    script.write_plainly()
    sys.stdout.write("● 82 %\n")
    assert capfd.readouterr().out == "● 82 %\n"


def test_many_threads_share_few_heaps_so_that_an_idle_bot_is_small() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("another C library")
    ran = subprocess.run([sys.executable, "-c", ALLOCATING], cwd=ROOT, capture_output=True, check=True, text=True)
    assert 1 <= ran.stderr.count("Arena ") <= quick_imports.ARENAS


@pytest.mark.parametrize("damage", ["no database", "a broken page"])
async def test_a_damaged_database_is_one_sentence_that_names_the_command_that_helps(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "plumbline.sqlite"
    write_damaged(path, damage)
    database = open_database(f"sqlite:///{path}")
    try:
        with pytest.raises(
            StoreUnavailable, match=r"plumbline.sqlite .* is damaged: .* plumbline restore FILE --force"
        ):
            async with SqlStore(database).transaction() as transaction:
                await transaction.tasks.is_known("a")
    finally:
        await database.dispose()


async def test_a_damaged_file_of_workflows_is_one_sentence_too(tmp_path: Path) -> None:
    path = tmp_path / "workflows.sqlite"
    write_damaged(path, "no database")
    engine.configure(f"sqlite:///{path}", "replica")
    with pytest.raises(PlumblineError, match=r"workflows.sqlite .* is damaged: .* plumbline restore FILE --force"):
        await engine.launch(f"sqlite:///{path}", "replica")
    await engine.stop()


def write_damaged(path: Path, damage: str) -> None:
    if damage == "no database":
        path.write_bytes(b"no database at all" * 500)
        return
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE tasks (number INTEGER PRIMARY KEY, key TEXT)")
        connection.executemany("INSERT INTO tasks (key) VALUES (?)", [("x" * 500,) for _ in range(100)])
        connection.commit()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize(
    ("file", "place"), [("/var/till/state.db", "/var/till/state.db"), (None, "PLUMBLINE_DATA_DIR")]
)
def test_full_disk_is_one_sentence_that_says_where(
    number: int, file: str | None, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full() -> None:
        raise OSError(number, os.strerror(number), *([file] if file else []))

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    written = " ".join(capsys.readouterr().err.split())
    assert written.startswith(f"plumbline: {os.strerror(number)}: ")
    assert place in written
    assert "Traceback" not in written


def test_other_errors_of_the_system_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/var/till")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(PermissionError):
        cli.main()
