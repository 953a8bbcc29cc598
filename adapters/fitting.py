"""Model fitting in a separate process, which does not affect the bot's memory and response times."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import TypeVar

from threadpoolctl import threadpool_limits

from core.model.errors import PlumblineError
from core.model.findings import PastIncident
from core.triage.owner_model import Embeddings, OwnerModel

T = TypeVar("T")

LEARNING = (
    "This needs scipy and scikit-learn: install plumbline-bot[learning]. Without them, nothing is learned from your "
    "incidents and outcomes."
)


def can_learn() -> bool:
    """Return whether what only learning needs is installed."""
    return find_spec("sklearn") is not None


async def fit_owners_apart(
    incidents: Sequence[PastIncident], embeddings: Embeddings | None = None
) -> OwnerModel | None:
    """Run `OwnerModel.fitted` in a new process. Raises PlumblineError if the process is killed."""
    try:
        return await apart(OwnerModel.fitted, incidents, embeddings)
    except BrokenProcessPool as error:
        raise PlumblineError(
            f"The process that learns from {len(incidents)} past incidents was killed, probably because memory ran out. "
            "Triage continues with what it learned before."
        ) from error


async def apart(function: Callable[..., T], *arguments: object) -> T:
    """Return the result of `function`, computed on one core of a new process, which ends if this is cancelled.

    Raises BrokenProcessPool if the process is killed.
    """
    spawn = get_context("spawn")
    theirs, ours = spawn.Pipe(duplex=False)
    process = ProcessPoolExecutor(max_workers=1, mp_context=spawn, initializer=_end_with, initargs=(theirs,))
    try:
        return await asyncio.get_running_loop().run_in_executor(process, _on_one_core, function, arguments)
    finally:
        process.shutdown(wait=False)  # a wait would block the event loop until the function returns
        ours.close()
        theirs.close()


def _end_with(caller: Connection) -> None:
    """Exit when the caller closes its end of the pipe or dies, instead of working or waiting for work."""
    Thread(target=_exit_after, args=(caller,), daemon=True).start()


def _exit_after(caller: Connection) -> None:
    wait([caller])
    os._exit(1)


def _on_one_core(function: Callable[..., T], arguments: tuple[object, ...]) -> T:
    """Run the function on one core.

    The other cores are kept free, and on a busy machine more threads only wait for each other.
    """
    # For libraries that the function loads later; the limit applies to loaded ones only. Not read as a setting.
    os.environ["OMP_NUM_THREADS"] = "1"  # noqa: TID251
    with threadpool_limits(1):
        return function(*arguments)
