"""Something made of arrays in one file of the data directory, read again whenever some process has replaced it."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")

Arrays = Mapping[str, Any]  # of numpy arrays by name


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    """What was read, and the state of the file it was read from (inode, modification time in ns)."""

    state: tuple[int, int]
    content: T | None


class ArrayFile(Generic[T]):
    """Replaced by renaming, so that a reader sees the old content or the new one."""

    def __init__(self, path: Path, pack: Callable[[T], Arrays], unpack: Callable[[Arrays], T | None]) -> None:
        """`unpack` returns None for another format, or raises ValueError or KeyError."""
        self._path = path
        self._pack = pack
        self._unpack = unpack
        self._loaded: _Loaded[T] | None = None

    async def load(self) -> T | None:
        """None while nothing was saved, and for a damaged file: what is in it is learned anew in time."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        state = (status.st_ino, status.st_mtime_ns)
        if self._loaded is None or self._loaded.state != state:
            self._loaded = _Loaded(state, await asyncio.to_thread(self._read))
        return self._loaded.content

    async def save(self, content: T) -> None:
        await asyncio.to_thread(self._write, self._pack(content))

    def _write(self, arrays: Arrays) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".new")
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    def _read(self) -> T | None:
        try:
            with self._path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return self._unpack(arrays)
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
            return None
