"""The templates of the local page, compiled once in a process: tests make many pages anew, and each compiles for 50 ms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import CodeType
from unittest.mock import patch

import pytest
from jinja2 import Environment
from jinja2.bccache import Bucket, BytecodeCache

from adapters.console import console


class _CompiledTemplates(BytecodeCache):
    def __init__(self) -> None:
        self._codes: dict[str, CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.code


_COMPILED = _CompiledTemplates()


@pytest.fixture(scope="session", autouse=True)
def templates_compiled_once() -> Iterator[None]:
    """For the folders whose `conftest.py` imports it."""
    with patch.object(console, "Environment", partial(Environment, bytecode_cache=_COMPILED)):
        yield
