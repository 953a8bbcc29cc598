"""Files under a folder, listed and read again only after changes."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from adapters.tools.section import ToolSection
from core.model.errors import ToolUnavailable

MAX_KEPT = 16 * 1024 * 1024  # bytes of files on disk whose content is cached per tool
UNSETTLED = 2_000_000_000  # nanoseconds after a modification in which another one could have the same time stamp

T = TypeVar("T")


class ParsedFiles(Generic[T]):
    """The files with some suffixes under a folder, each with the result of `read`.

    A folder is listed and a file is read once per change. `read` may raise OSError or ToolUnavailable.
    """

    def __init__(self, root: Path, suffixes: tuple[str, ...], read: Callable[[Path], T]) -> None:
        self._root = root
        self._suffixes = suffixes
        self._read = read
        self._listed: dict[str, tuple[int, list[str], list[str]]] = {}
        self._contents: OrderedDict[Path, tuple[tuple[int, int], T]] = OrderedDict()
        self._lock = Lock()

    def paths(self) -> list[Path]:
        """Return the files sorted by path. Raises ToolUnavailable if the root cannot be listed."""
        if not self._root.is_dir():
            raise ToolUnavailable(
                f"The folder {self._root} does not exist: correct the path of this tool in plumbline.yaml."
            )
        with self._lock:
            seen: dict[str, tuple[int, list[str], list[str]]] = {}
            files: list[Path] = []
            waiting = [str(self._root)]
            while waiting:
                folder = waiting.pop()
                entry = self._folder(folder)
                if entry is not None:
                    seen[folder] = entry
                    waiting += entry[1]
                    files += map(Path, entry[2])
            self._listed = seen
        return sorted(files)

    def of_service(self, folder: str, service: str) -> list[Path]:
        """Return the files `<root>/**/<folder>/<service><suffix>`.

        The service's name is compared and never becomes part of a path, so an alert cannot point outside the root.
        """
        names = {f"{service}{suffix}" for suffix in self._suffixes}
        return [path for path in self.paths() if path.name in names and path.parent.name == folder]

    def content(self, path: Path) -> T:
        """Return the content of a file. Raises OSError if it cannot be read."""
        with self._lock:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            cached = self._contents.pop(path, None)
            content = cached[1] if cached is not None and cached[0] == stamp else self._read(path)
            if status.st_size <= MAX_KEPT and _is_settled(status.st_mtime_ns):
                self._contents[path] = (stamp, content)
                while sum(size for (_, size), _ in self._contents.values()) > MAX_KEPT:
                    self._contents.popitem(last=False)
            return content

    def is_growing(self, path: Path) -> bool:
        """Return whether a file was just written, so that caching its content is useless."""
        return not _is_settled(path.stat().st_mtime_ns)

    def _folder(self, folder: str) -> tuple[int, list[str], list[str]] | None:
        """Return a folder's modification time, subfolders and files; None if it is missing or not readable."""
        try:
            changed = Path(folder).stat().st_mtime_ns
            cached = self._listed.get(folder)
            if cached is not None and cached[0] == changed:
                return cached
            with os.scandir(folder) as scanned:
                entries = list(scanned)
            folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            files = [entry.path for entry in entries if entry.name.endswith(self._suffixes) and entry.is_file()]
        except OSError:
            return None
        return (changed if _is_settled(changed) else -1, folders, files)


def _is_settled(changed: int) -> bool:
    return changed < time.time_ns() - UNSETTLED


class FilesTool(ToolSection):
    """A tool that reads the files in a folder of this machine."""

    path: Path
