"""A press of “Stop”: whichever replica a language model works for, it ends that work within a second.

The press is stored as a task under a key of its own, like every press. So whoever accepts it, the working replica finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from core.model.errors import StoreUnavailable
from core.ports import Store

LOOK = 0.5  # seconds between two looks for a press

T = TypeVar("T")


def stop_key(stop_id: str) -> str:
    """Return the key of the task that stops a model's work."""
    return f"stop:{stop_id}"


async def unless_stopped(work: Coroutine[Any, Any, T], stop_id: str, store: Store) -> T | None:
    """Return the result of the work; None if somebody stopped it, which cancels the work. Raises what the work raises."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(_stopped(stop_id, store))
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait([working, stopping])


async def _stopped(stop_id: str, store: Store) -> None:
    """Wait until somebody has pressed “Stop”."""
    while True:
        await asyncio.sleep(LOOK)
        with suppress(StoreUnavailable):  # an outage is no press
            async with store.transaction() as transaction:
                if await transaction.tasks.is_known(stop_key(stop_id)):
                    return
