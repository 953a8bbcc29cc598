"""All messages of the bot, as Slack, Teams and the local page show them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache

from aiohttp import web

from adapters.console.console import Console, PageNotFound
from adapters.console.messages import ConsoleMessage, encode
from core.model.messages import Message

LONG = "A text as long as whoever writes it likes, with *marks* and <tags>. " * 40
MANY = 40  # items in the large sample of a message


class Gallery:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def show(self, request: web.Request) -> web.Response:
        """Handle `GET /gallery?sample=NAME`."""
        samples = await asyncio.to_thread(gallery_samples)
        name = request.query.get("sample", next(iter(samples)))
        if name not in samples:
            raise PageNotFound("There is no such message in the gallery: choose one on the left.")
        html = await asyncio.to_thread(self._page, name, samples)  # some samples contain a rendered diagram
        return web.Response(text=html, content_type="text/html")

    def _page(self, name: str, samples: Mapping[str, Message]) -> str:
        # Imported here, because only this page needs the renderers of both chats.
        from adapters.slack.render import render as as_blocks
        from adapters.teams.render import render as as_card

        message = samples[name]
        kind, payload = encode(message)
        shown = ConsoleMessage(0, "gallery", None, kind, payload, self._console.clock.now(), 0)
        slack, card = as_blocks(message), as_card(message)
        return self._console.renderer.page(
            "gallery.html",
            names=list(samples),
            name=name,
            slack=slack.blocks,
            slack_notification=slack.text,
            card=card.content,
            card_notification=card.summary,
            shown=shown,
            content=message,
        )


@cache
def gallery_samples() -> dict[str, Message]:
    """Return messages by name: a typical one, and one of maximum size."""
    from core.samples import SAMPLES, everywhere

    return SAMPLES | {f"{name}, at its largest": message for name, message in everywhere(LONG, MANY).items()}
