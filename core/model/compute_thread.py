"""Work that keeps the processor busy is done beside the event loop: what was received is acknowledged meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

# One thread for all: more would share one interpreter, and the loop would have to wait for each of them.
_THREAD = ThreadPoolExecutor(1, "aside")


async def aside(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Run `work`, of some milliseconds, in the order of the calls, and return its result. Raises what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work, *arguments)
