"""Show quotes from the documents while the language model composes the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

PATIENCE = 4.0  # seconds that the model gets before quotes are shown
READS_ON = "The language model is still reading the documents and may improve this answer. No confidence yet."


class Meanwhile:
    """Interim quotes for one answer."""

    def __init__(self, quote: Callable[[], Awaitable[bool]]) -> None:
        self.is_quoted = False  # whether quotes are shown
        self._quote = quote
        self._done = asyncio.Event()
        self._quoting = asyncio.create_task(self._quoted())

    async def end(self) -> bool:
        """Stop quoting. Returns whether quotes are shown.

        A post that has begun is completed first, so that it cannot replace the answer.
        """
        self._done.set()
        return await asyncio.shield(self._quoting)  # cancelling the caller does not cancel the post

    async def _quoted(self) -> bool:
        try:
            await asyncio.wait_for(self._done.wait(), PATIENCE)
        except TimeoutError:
            self.is_quoted = await self._quote()
        return self.is_quoted


@asynccontextmanager
async def quoted_meanwhile(quote: Callable[[], Awaitable[bool]]) -> AsyncGenerator[Meanwhile]:
    """Call `quote` if the block takes longer than PATIENCE. `quote` shows what there is and returns whether it did."""
    meanwhile = Meanwhile(quote)
    try:
        yield meanwhile
    finally:
        await meanwhile.end()
