"""Numpy arrays in one file and one blob of bytes, written without pickle; and the encoder, which is made of them."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

import numpy as np
import structlog

from core.knowledge.encoder import FORMAT, Encoder, TermStatistics

T = TypeVar("T")

Arrays = Mapping[str, Any]  # numpy arrays by name

# Appended to the archive, where readers of archives ignore it.
_SEAL = b"plumbline sha256"
_SIZE = len(_SEAL) + hashlib.sha256().digest_size
# The errors that numpy raises for an intact file that another version wrote.
_UNREADABLE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error),
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArrayFormat(Generic[T]):
    """Conversion between a `T` and arrays. `unpack` returns None for an unknown version, or raises ValueError or
    KeyError.

    `name` describes the content in the log.
    """

    pack: Callable[[T], Arrays]
    unpack: Callable[[Arrays], T | None]
    name: str = "model"

    def write(self, content: T, file: IO[bytes]) -> None:
        """Write the content. Raises OSError."""
        archive = io.BytesIO()
        np.savez(archive, **self.pack(content))
        file.write(archive.getbuffer())
        file.write(_SEAL + hashlib.sha256(archive.getbuffer()).digest())

    def read(self, file: IO[bytes]) -> T | None:
        """Return the content; None, with a warning in the log, if it is damaged or of an unknown version."""
        written = file.read()
        archive, seal = memoryview(written)[:-_SIZE], written[-_SIZE:]
        if seal != _SEAL + hashlib.sha256(archive).digest():
            return self._unread("The file is damaged, or an earlier version wrote it.")
        try:
            with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:  # noqa: TID251 -- the one reader
                return self.unpack(arrays)
        except _UNREADABLE as error:
            return self._unread(str(error))

    def _unread(self, reason: str) -> None:
        log.warning("learned_model_unreadable", model=self.name, error=reason, action="It will be learned again.")


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


def _pack(encoder: Encoder) -> Arrays:
    meta = {
        "format": FORMAT,
        "passages": encoder.statistics.passages,
        "total_length": encoder.statistics.total_length,
        "average_length": encoder.average_length,
        "changed_since_fit": encoder.changed_since_fit,
        "settled": encoder.settled,
        "embedder": encoder.embedder,
        "families": dict(encoder.families),
        "embedded": encoder.embedded,
    }
    return {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "terms": encoder.statistics.terms,
        "counts": encoder.statistics.counts,
        "repeated": encoder.statistics.repeated,
    }


def _unpack(arrays: Arrays) -> Encoder | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != FORMAT:
        log.warning("index_of_another_version", action="Searches find nothing until the next ingestion has rebuilt it.")
        return None
    return Encoder(
        TermStatistics(arrays["terms"], arrays["counts"], arrays["repeated"], meta["passages"], meta["total_length"]),
        meta["average_length"],
        meta["changed_since_fit"],
        meta["settled"],
        meta["embedder"],
        meta["families"],
        meta["embedded"],
    )


ENCODER = ArrayFormat(_pack, _unpack, "encoder")
