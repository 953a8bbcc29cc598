"""Learns the encoder in a process of its own, so that neither the bot's memory nor its answers feel it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from threadpoolctl import threadpool_limits

from core.errors import IndexUnavailable
from core.knowledge.document import Passage
from core.knowledge.encoder import Encoder


def _fit(passages: Sequence[Passage], embedder: str) -> Encoder:
    """On one core: the others are for those who wait, and on a busy machine more threads only wait for each other."""
    with threadpool_limits(1):
        return Encoder.fitted(passages, embedder)


async def fit_apart(passages: Sequence[Passage], embedder: str) -> Encoder:
    """Fit the encoder in a fresh process, which takes its memory along when it ends. Raises IndexUnavailable."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        try:
            return await asyncio.get_running_loop().run_in_executor(process, _fit, passages, embedder)
        except BrokenProcessPool as error:
            raise IndexUnavailable(
                f"The process that learns from {len(passages)} passages was killed, probably for want of memory: "
                "the corpus stays as it was."
            ) from error
