"""Serialization of arrays: numpy's archive format, which contains no code, with a digest that detects damage."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar

import numpy as np
import structlog

T = TypeVar("T")

Arrays = Mapping[str, Any]  # numpy arrays by name

# Appended to the archive, where readers of archives ignore it.
_SEAL = b"plumbline sha256"
_SIZE = len(_SEAL) + hashlib.sha256().digest_size
# With a valid digest, another version wrote the file: numpy raises any of these for unknown content.
_UNREADABLE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error),
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArrayFormat(Generic[T]):
    """The conversion between a `T` and arrays. `unpack` returns None for another format, or raises ValueError or
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
        """Return the content; None if it is damaged or in another format, which is logged. It will be learned again."""
        written = file.read()
        archive, seal = memoryview(written)[:-_SIZE], written[-_SIZE:]
        if seal != _SEAL + hashlib.sha256(archive).digest():
            return self._unread("It is damaged, or of an earlier version.")
        try:
            with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:  # noqa: TID251 -- the one reader
                return self.unpack(arrays)
        except _UNREADABLE as error:
            return self._unread(str(error))

    def _unread(self, reason: str) -> None:
        log.warning("learned_model_unreadable", model=self.name, error=reason, action="It is learned anew.")
