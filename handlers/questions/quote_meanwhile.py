"""Nobody waits for a language model: what the documents say stands in the answer's message while the model reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

PATIENCE = 4.0  # seconds that a model has to say something before the documents are quoted
READS_ON = "The language model is still reading the documents and may improve this answer. No confidence yet."


class Meanwhile:
    """The quotes that stand in for one answer."""

    def __init__(self, quote: Callable[[], Awaitable[bool]]) -> None:
        self.is_quoted = False  # whether something is
        self._quote = quote
        self._done = asyncio.Event()
        self._quoting = asyncio.create_task(self._quoted())

    async def end(self) -> bool:
        """Quote no more; whether something is quoted. Showing that has begun is finished, so that it replaces nothing."""
        self._done.set()
        return await asyncio.shield(self._quoting)  # whoever gives up waiting for it does not break it off

    async def _quoted(self) -> bool:
        try:
            await asyncio.wait_for(self._done.wait(), PATIENCE)
        except TimeoutError:
            self.is_quoted = await self._quote()
        return self.is_quoted


@asynccontextmanager
async def quoted_meanwhile(quote: Callable[[], Awaitable[bool]]) -> AsyncGenerator[Meanwhile]:
    """`quote` shows what there is, and tells whether there was anything; it is not called if the block ends soon."""
    meanwhile = Meanwhile(quote)
    try:
        yield meanwhile
    finally:
        await meanwhile.end()
