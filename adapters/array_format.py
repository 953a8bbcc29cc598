"""Something made of arrays as bytes: numpy's archive, which holds no code, and a digest that tells damage."""

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

Arrays = Mapping[str, Any]  # of numpy arrays by name

# Stands after the archive, where readers of archives look for nothing.
_SEAL = b"plumbline sha256"
_SIZE = len(_SEAL) + hashlib.sha256().digest_size
# The digest is right, so somebody else wrote it, or another version: numpy raises any of these for what it does not know.
_UNREADABLE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error),
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArrayFormat(Generic[T]):
    """How a `T` is written as arrays. `unpack` returns None for another format, or raises ValueError or KeyError.

    `name` says in the log what it is.
    """

    pack: Callable[[T], Arrays]
    unpack: Callable[[Arrays], T | None]
    name: str = "model"

    def write(self, content: T, file: IO[bytes]) -> None:
        """Raises OSError."""
        archive = io.BytesIO()
        np.savez(archive, **self.pack(content))
        file.write(archive.getbuffer())
        file.write(_SEAL + hashlib.sha256(archive.getbuffer()).digest())

    def read(self, file: IO[bytes]) -> T | None:
        """Return None for what is damaged or of another format, and say so in the log: it is learned anew in time."""
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
