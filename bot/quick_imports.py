"""A light start: imports without garbage collection, which would find nothing and takes a fifth of their time, and few heaps."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Generator
from contextlib import contextmanager

ARENA_MAX = -8  # glibc's M_ARENA_MAX
ARENAS = 2  # heaps of the C library; by default, each thread gets one and keeps what it once needed


@contextmanager
def quick_imports() -> Generator[None]:
    """Disable garbage collection during imports, and exclude the imported objects from later collections.

    Threads share few heaps from then on, if the C library is glibc: an idle bot is some 10 MB smaller.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(ARENA_MAX, ARENAS)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
