"""A server that answers as a recording says, and the reader that a definition makes of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import Token
from adapters.readers.definition import Definition, shipped
from adapters.readers.pages import Pages
from adapters.readers.reader import Reader
from adapters.readers.sections import opened
from core.ports import TimeWindow

FOLDER = Path(__file__).parents[1] / "contract" / "recorded_readers"
START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))
LIMIT = 1_000
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(slots=True)
class Recording:
    """What was said when a tool was asked: `exchanges` by kind of data, and what was understood of them."""

    kind: str
    tool: Mapping[str, Any]
    headers: Mapping[str, str]
    exchanges: Mapping[str, Sequence[Mapping[str, Any]]]
    understood: Mapping[str, Sequence[str]]
    services: Mapping[str, Any] = field(default_factory=dict)
    pages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what pages of builds name

    @property
    def definition(self) -> Definition:
        return shipped()[self.kind]


@cache
def recording(kind: str) -> Recording:
    given = yaml.safe_load((FOLDER / f"{kind}.yaml").read_text(encoding="utf-8"))
    tool = dict(given.pop("tool", {}))
    services = tool.pop("services", {})
    headers, understood, pages = given.pop("headers", {}), given.pop("understood"), given.pop("pages", {})
    return Recording(kind, tool, headers, given, understood, services, pages)


class Server:
    """Answers each request with the next answer, or all with what `says` returns; keeps what was asked."""

    def __init__(self, answers: Sequence[Mapping[str, Any]] = (), says: Handler | None = None) -> None:
        self._answers = list(answers)
        self._says = says
        self.asked: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(request.headers)
        self.asked.append(await _as_written(request))
        if self._says is not None:
            return await self._says(request)
        index = min(len(self.asked), len(self._answers)) - 1
        return _answered(self._answers[index], str(request.url.origin()))


async def _as_written(request: web.Request) -> dict[str, Any]:
    asked: dict[str, Any] = {"path": request.raw_path.partition("?")[0]}
    if request.query:
        asked["query"] = dict(request.query)
    if request.method == "POST" and "json" in request.content_type:
        asked["json"] = await request.json()
    elif request.method == "POST":
        asked["form"] = dict(await request.post())
    return asked


def _answered(exchange: Mapping[str, Any], origin: str) -> web.Response:
    headers = {name: value.replace("ORIGIN", origin) for name, value in exchange.get("answer_headers", {}).items()}
    if "lines" in exchange:
        return web.Response(text="\n".join(map(json.dumps, exchange["lines"])), headers=headers)
    if "text" in exchange:
        return web.Response(text=exchange["text"], headers=headers)
    return web.Response(
        text=json.dumps(exchange["answer"]).replace("ORIGIN/", f"{origin}/"),
        headers=headers,
        content_type="application/json",
    )


@asynccontextmanager
async def reading(
    recorded: Recording, server: Server, *, seconds: float = 6.0, max_body: int = 2_000_000
) -> AsyncIterator[Reader]:
    app = web.Application(client_max_size=2**22)
    app.router.add_route("*", "/{path:.*}", server.handle)
    definition = recorded.definition
    defaults = {name: each.default for name, each in definition.settings.items() if each.default}
    settings = {**defaults, **recorded.tool}
    secrets = {name: f"secret-{name}" for name in definition.secrets}
    async with TestServer(app) as served, aiohttp.ClientSession() as session:
        http = opened(definition, "the server", str(served.make_url("")), session, settings, secrets)
        http = replace(http, timeout=seconds, max_body=max_body)
        if definition.authentication.oauth is not None:  # whose tokens come from another server
            http = replace(http, credentials=Token("Bearer issued"))
        yield Reader(recorded.kind, Pages(http, settings), definition, recorded.services)
