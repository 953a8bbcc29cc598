"""How a server of ours says no: for a while, for ever, or from a certain request on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(slots=True)
class Refusal:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    after: int = 0  # requests that are answered before


class Refusals:
    """Counts the requests of a server, and answers some of them with a refusal."""

    def __init__(self) -> None:
        self.requests: list[str] = []  # path and query of each
        self._waiting: list[Refusal] = []
        self._held: asyncio.Event | None = None

    def refuse(self, status: int, headers: Mapping[str, str] | None = None, times: int = 1, after: int = 0) -> None:
        """Answer the next `times` requests, but for the first `after` of them, with this."""
        self._waiting.append(Refusal(status, headers or {}, times, after))

    def hold(self, until: asyncio.Event) -> None:
        """Answer nothing before that."""
        self._held = until

    async def held(self) -> None:
        if self._held is not None:
            await self._held.wait()

    def relent(self) -> None:
        self._waiting.clear()

    def answer(self, request: web.Request) -> web.Response | None:
        """The refusal of a request, if it is refused."""
        self.requests.append(request.path_qs)
        for refusal in self._waiting:
            if refusal.after:
                refusal.after -= 1
                return None
            refusal.times -= 1
            if refusal.times == 0:
                self._waiting.remove(refusal)
            return web.json_response({"error": "refused"}, status=refusal.status, headers=refusal.headers)
        return None


def as_middleware(refusals: Refusals):
    """For an aiohttp application."""

    @web.middleware
    async def middleware(request: web.Request, handler):
        refusal = refusals.answer(request)
        await refusals.held()
        return refusal or await handler(request)

    return middleware
