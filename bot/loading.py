"""Modules are loaded without looking for garbage in between: there is none, and to look took a fifth of the time."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """Around imports. What was loaded stays for good, and is not looked through afterwards either."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
