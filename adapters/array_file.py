"""A file of arrays in the data directory, read again whenever a process has replaced it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from adapters.array_format import ArrayFormat

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    """The loaded value, and the state of its file (inode, modification time in ns)."""

    state: tuple[int, int]
    content: T | None


class ArrayFile(Generic[T]):
    """Implements `core.ports.LearnedStore`. Replaced by renaming: a reader sees the old content or the new one."""

    def __init__(self, path: Path, form: ArrayFormat[T]) -> None:
        self._path = path
        self._form = form
        self._loaded: _Loaded[T] | None = None

    async def load(self) -> T | None:
        """Return the content; None if nothing was saved or the file is damaged."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        state = (status.st_ino, status.st_mtime_ns)
        if self._loaded is None or self._loaded.state != state:
            self._loaded = _Loaded(state, await asyncio.to_thread(self._read))
        return self._loaded.content

    async def load_newest(self) -> T | None:
        return await self.load()

    async def save(self, content: T, /) -> None:
        await asyncio.to_thread(self._write, content)

    def _write(self, content: T) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".new")
        with temporary.open("wb") as file:
            self._form.write(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    def _read(self) -> T | None:
        try:
            with self._path.open("rb") as file:
                return self._form.read(file)
        except OSError:
            return None
