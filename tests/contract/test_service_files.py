"""Files of the file tools are read again only where they changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from adapters.tools.section import ParsedFiles

LONG_AGO = time.time() - 3600


class Reader:
    """Counts how often it reads."""

    def __init__(self) -> None:
        self.reads: list[str] = []

    def __call__(self, path: Path) -> str:
        self.reads.append(path.name)
        return path.read_text("utf-8")


def settled(path: Path, text: str, ago: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    os.utime(path, (LONG_AGO - ago, LONG_AGO - ago))
    os.utime(path.parent, (LONG_AGO - ago, LONG_AGO - ago))
    return path


def test_a_file_is_read_once_for_each_change_of_it(tmp_path: Path) -> None:
    reader = Reader()
    files = ParsedFiles(tmp_path, (".log",), reader)
    path = settled(tmp_path / "logs" / "api.log", "one", ago=60)
    assert [files.content(path) for _ in range(3)] == ["one"] * 3
    settled(path, "two")
    assert files.content(path) == "two"
    assert reader.reads == ["api.log"] * 2


def test_a_file_that_was_written_to_just_now_is_not_kept(tmp_path: Path) -> None:
    files = ParsedFiles(tmp_path, (".log",), reader := Reader())
    path = tmp_path / "api.log"
    path.write_text("one", "utf-8")
    assert files.is_growing(path)
    assert [files.content(path) for _ in range(2)] == ["one", "one"]
    assert len(reader.reads) == 2
