"""One thread for computations that take seconds, so that an acknowledgement waits for one of them at most."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Threads that compute share one interpreter with the loop: with each more of them the loop's share would be smaller.
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="analysis")


async def analysed(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work` after the analyses that came before it, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, partial(work, *arguments, **options))
