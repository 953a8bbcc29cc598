"""Adds modules and packages of the tests to a package, as if somebody had put them there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from adapters.chat import chat_modules

NEW_KINDS = Path(__file__).parent


@contextmanager
def added_to(package: ModuleType, folder: Path) -> Iterator[None]:
    """Add what is in a folder to a package until the end of the block."""
    before = package.__path__
    package.__path__ = [*before, str(folder)]
    chat_modules.cache_clear()
    try:
        yield
    finally:
        package.__path__ = before
        chat_modules.cache_clear()
        for file in folder.iterdir():
            name = f"{package.__name__}.{file.stem}"
            for module in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
                del sys.modules[module]
            package.__dict__.pop(file.stem, None)
