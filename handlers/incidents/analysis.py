"""One thread for computations that take seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# One worker: every further computing thread would take interpreter time from the event loop.
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="analysis")


async def run_in_analysis_thread(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run `work` in the single compute thread, after the work queued before it, and return its result."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, partial(work, *arguments, **options))
