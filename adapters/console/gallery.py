"""All messages of the bot, as Slack, Teams and the local page show them."""

from __future__ import annotations

import asyncio

from aiohttp import web

from adapters.console.console import Console, PageNotFound
from adapters.console.messages import ConsoleMessage
from adapters.console.payload import encode


class Gallery:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def show(self, request: web.Request) -> web.Response:
        """Handle `GET /gallery?sample=NAME`."""
        html = await asyncio.to_thread(self._page, request.query.get("sample", ""))  # a sample may have a diagram
        return web.Response(text=html, content_type="text/html")

    def _page(self, name: str) -> str:
        # Imported here, because only this page needs the samples and the renderers of both chats.
        from adapters.slack.render import render as as_blocks
        from adapters.teams.render import render as as_card
        from core.samples import SAMPLES

        name = name or next(iter(SAMPLES))
        if name not in SAMPLES:
            raise PageNotFound("There is no such message in the gallery: choose one on the left.")
        message = SAMPLES[name]
        kind, payload = encode(message)
        shown = ConsoleMessage(0, "gallery", None, kind, payload, self._console.clock.now(), 0)
        slack, card = as_blocks(message), as_card(message)
        return self._console.renderer.page(
            "gallery.html",
            names=list(SAMPLES),
            name=name,
            slack=slack.blocks,
            slack_notification=slack.text,
            card=card.content,
            card_notification=card.summary,
            shown=shown,
            content=message,
        )
