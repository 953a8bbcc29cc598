"""The moves between files: each call counts, also those in tasks, threads and generators, whoever else runs meanwhile."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.benchmarks.walk import Visit, Walk, profiled, stays


class Files:
    """Functions in files of their own, which are compiled and never written."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"asyncio": asyncio}

    def write(self, file: str, text: str) -> None:
        exec(compile(text, f"/product/{file}.py", "exec"), self.names)

    def walk(self, *arguments: object) -> list[str]:
        """Return the stays of a walk that begins in `first`."""
        walk = self._begun()
        with profiled(walk.notice):
            self.names["first"](*arguments)
        return self._stays(walk)

    async def walk_async(self, *others: str) -> list[str]:
        walk = self._begun()
        with profiled(walk.notice):
            await asyncio.gather(*(self.names[name]() for name in ("first", *others)))
        return self._stays(walk)

    def _begun(self) -> Walk:
        code: CodeType = self.names["first"].__code__
        return Walk(code, ("/product/",))

    def _stays(self, walk: Walk) -> list[str]:
        assert walk.begin is not None
        return [Path(file).stem for file in stays(walk.begin)]


@pytest.fixture
def files() -> Files:
    return Files()


def test_a_file_is_left_for_each_other_one_and_returned_to() -> None:
    begin = Visit("a", [Visit("b"), Visit("a", [Visit("c"), Visit("c")]), Visit("b", [Visit("c")])])
    assert stays(begin) == ["a", "b", "a", "c", "a", "c", "a", "b", "c", "b", "a"]


def test_every_call_of_a_function_counts(files: Files) -> None:
    files.write("b", "def second(): pass")
    files.write("a", "def first():\n for _ in range(3): second()")
    assert files.walk() == ["a", "b", "a", "b", "a", "b", "a"]


def test_a_call_within_a_file_moves_nobody(files: Files) -> None:
    files.write("a", "def helper(): pass\ndef first():\n helper()\n helper()")
    assert files.walk() == ["a"]


def test_a_call_by_way_of_a_library_leads_to_the_file_that_is_called(files: Files) -> None:
    files.write("b", "def second(number): return -number")
    files.write("a", "def first(): return sorted([3, 1], key=second)")
    assert files.walk() == ["a", "b", "a", "b", "a"]


def test_an_error_leads_back_to_who_handles_it(files: Files) -> None:
    files.write("c", "def third(): raise ValueError")
    files.write("b", "def second(): third()")
    files.write("a", "def first():\n try: second()\n except ValueError: fourth()")
    files.write("d", "def fourth(): pass")
    assert files.walk() == ["a", "b", "c", "b", "a", "d", "a"]


def test_a_generator_is_entered_once_however_often_it_goes_on(files: Files) -> None:
    files.write("c", "def third(): pass")
    files.write("b", "def second():\n yield 1\n third()\n yield 2")
    files.write("a", "def first(): return list(second())")
    assert files.walk() == ["a", "b", "c", "b", "a"]


async def test_a_coroutine_that_waits_is_entered_once(files: Files) -> None:
    files.write("c", "def third(): pass")
    files.write("b", "async def second():\n await asyncio.sleep(0)\n third()\n await asyncio.sleep(0)")
    files.write("a", "async def first():\n await second()")
    assert await files.walk_async() == ["a", "b", "c", "b", "a"]


async def test_what_runs_meanwhile_is_no_part_of_a_walk(files: Files) -> None:
    files.write("b", "async def second():\n await asyncio.sleep(0)")
    files.write("a", "async def first():\n for _ in range(3): await asyncio.sleep(0)")
    files.write("d", "async def other():\n for _ in range(5): await second()")
    assert await files.walk_async("other") == ["a"]


async def test_tasks_are_a_part_of_what_begins_them(files: Files) -> None:
    files.write("c", "def third(): pass")
    files.write("b", "async def second():\n await asyncio.sleep(0)\n third()")
    files.write("a", "async def first(): await asyncio.gather(second(), second())")
    assert await files.walk_async() == ["a", "b", "c", "b", "a", "b", "c", "b", "a"]


async def test_work_in_a_thread_is_a_part_of_what_gives_it(files: Files) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # the thread is there before the walk begins
        files.names["pool"] = pool
        files.write("b", "def second(): pass")
        files.write("a", "async def first(): await asyncio.get_running_loop().run_in_executor(pool, second)")
        assert await files.walk_async() == ["a", "b", "a"]


def test_what_a_module_does_when_it_is_imported_does_not_count(files: Files) -> None:
    files.write("b", "def second(): pass")
    files.write("a", "def first(load): load()")
    assert files.walk(lambda: files.write("c", "second()")) == ["a"]
