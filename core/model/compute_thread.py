"""A single compute thread, so that CPU-bound work does not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

# One thread for all work: further threads would compete with the event loop for the interpreter.
_THREAD = ThreadPoolExecutor(1, "compute")


async def run_in_compute_thread(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Run `work`, which takes milliseconds, in the compute thread in call order, and return its result or raise its
    error.
    """
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work, *arguments)
