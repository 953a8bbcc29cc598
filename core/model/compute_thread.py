"""Threads for computations and for reading, so that none blocks the event loop, nor short work waits for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# One worker each, because every further computing thread would take interpreter time from the event loop.
_COMPUTE = ThreadPoolExecutor(1, "compute")
_ANALYSIS = ThreadPoolExecutor(1, "analysis")
_READING = ThreadPoolExecutor(2, "reading")  # two, because a disk of another machine may hang


async def run_in_compute_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work`, which takes milliseconds, after the work queued before it. Returns its result or raises its error."""
    return await asyncio.get_running_loop().run_in_executor(_COMPUTE, partial(work, *arguments, **options))


async def run_in_analysis_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work`, which may take seconds, after the work queued before it. Returns its result or raises its error."""
    return await asyncio.get_running_loop().run_in_executor(_ANALYSIS, partial(work, *arguments, **options))


async def run_in_reading_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work`, which reads and parses large files, after the work queued before it."""
    return await asyncio.get_running_loop().run_in_executor(_READING, partial(work, *arguments, **options))
