"""Something made of arrays as bytes: numpy's archive, which holds no code."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")

Arrays = Mapping[str, Any]  # of numpy arrays by name


@dataclass(frozen=True, slots=True)
class ArrayFormat(Generic[T]):
    """How a `T` is written as arrays. `unpack` returns None for another format, or raises ValueError or KeyError."""

    pack: Callable[[T], Arrays]
    unpack: Callable[[Arrays], T | None]

    def write(self, content: T, file: IO[bytes]) -> None:
        """Raises OSError."""
        np.savez(file, **self.pack(content))

    def read(self, file: IO[bytes]) -> T | None:
        """None for what is damaged or of another format: what is in it is learned anew in time."""
        try:
            with np.load(file, allow_pickle=False) as arrays:  # noqa: TID251 -- the one reader
                return self.unpack(arrays)
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
            return None
