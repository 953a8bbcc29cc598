"""What the fakes of servers have in common."""

from __future__ import annotations

from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer


class FakeServer:
    """Answers as long as its block lasts, at a port of its own."""

    def __init__(self, app: web.Application) -> None:
        self._server = TestServer(app)

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()
