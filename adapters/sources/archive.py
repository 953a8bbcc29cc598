"""Access to JSON files in a zip file or a folder, without unpacking."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import structlog

from core.model.errors import SourceUnavailable

MAX_FILE = 256 * 1024 * 1024  # bytes of one file in an archive; larger ones are left out

log = structlog.get_logger()


class _Files(Protocol):
    def names(self) -> list[str]: ...

    def read(self, name: str) -> bytes: ...

    def size(self, name: str) -> int: ...


class Archive:
    """Files by their path within the archive."""

    def __init__(self, files: _Files) -> None:
        self._files = files
        names = files.names()
        # Some tools put everything into one top-level folder.
        tops = {name.partition("/")[0] for name in names}
        self._root = f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in names) else ""
        self._names = sorted(name.removeprefix(self._root) for name in names)

    def files(self, folder: str) -> list[str]:
        """Return the JSON files in a folder and its subfolders, sorted by name."""
        return [name for name in self._names if name.startswith(f"{folder}/") and name.endswith(".json")]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the objects of a file with a list of objects; empty if the file is missing or contains something else."""
        if name not in self._names:
            return []
        if self._files.size(self._root + name) > MAX_FILE:
            log.warning("file_left_out", file=name, error=f"It is larger than {MAX_FILE} bytes.")
            return []
        try:
            value = json.loads(self._files.read(self._root + name))
        except (
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
            RuntimeError,
        ) as error:  # RuntimeError: encrypted, or nested too deeply
            log.warning("file_left_out", file=name, error=str(error))
            return []
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive. Raises SourceUnavailable if it does not exist or cannot be read."""
    try:
        if path.is_dir():
            yield Archive(_Folder(path))
            return
        with zipfile.ZipFile(path) as file:
            yield Archive(_Zip(file))
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceUnavailable(f"The archive {path} cannot be read: {error}.") from error


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def names(self) -> list[str]:
        inside = (path for path in self._folder.rglob("*.json") if path.resolve().is_relative_to(self._folder))
        return [path.relative_to(self._folder).as_posix() for path in inside if path.is_file()]

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def size(self, name: str) -> int:
        return (self._folder / name).stat().st_size


class _Zip:
    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file

    def names(self) -> list[str]:
        return [info.filename for info in self._file.infolist() if info.filename.endswith(".json")]

    def read(self, name: str) -> bytes:
        return self._file.read(name)

    def size(self, name: str) -> int:
        return self._file.getinfo(name).file_size
