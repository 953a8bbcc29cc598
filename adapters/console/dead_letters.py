"""The page of dead letters, with a button to retry them."""

from __future__ import annotations

from aiohttp import web

from adapters.console.console import Console, PageNotFound, Retry
from adapters.console.forms import read_form, see_other

SHOWN = 100


class DeadLetters:
    def __init__(self, console: Console, retry: Retry) -> None:
        """Create the handlers. `retry` retries a dead letter by its intent, and returns False if there is none."""
        self._console = console
        self._retry = retry

    async def show(self, request: web.Request) -> web.Response:
        """Handle `GET /dead-letters`: show them, newest first."""
        async with self._console.store.transaction() as transaction:
            letters = await transaction.dead_letters.latest(SHOWN)
            count = await transaction.dead_letters.count()
        html = self._console.renderer.page("dead_letters.html", letters=letters, count=count)
        return web.Response(text=html, content_type="text/html")

    async def retry(self, request: web.Request) -> web.Response:
        """Handle `POST /console/dead-letters` with an `intent`."""
        intent = (await read_form(request)).get("intent", "")
        if not await self._retry(intent):
            raise PageNotFound("There is no such dead letter. It may have been tried again already.")
        return see_other("/dead-letters")
