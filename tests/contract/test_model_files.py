"""Fetching a model from a hub, here a server of our own that speaks as the hub does."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from adapters.model_files import CHUNK, ModelFile, fetch_model_file, find_model_file
from bot.commands.llm_commands import run_fetch
from core.model.errors import MalformedInput, Unavailable

WEIGHTS = bytes(range(256)) * (CHUNK // 100)  # more than two chunks
NAME = "ferry-4b-instruct-Q4_K_M.gguf"


class Hub:
    """Holds one model; `breaks_after` bytes it hangs up."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256(WEIGHTS).hexdigest()
        self.paths = [NAME, "ferry-4b-instruct-Q8_0.gguf", "README.md"]
        self.breaks_after: int | None = None
        self.knows_ranges = True
        self.ranges: list[str | None] = []

    async def tree(self, request: web.Request) -> web.Response:
        if request.match_info["repository"] != "ferry-4b-GGUF":
            raise web.HTTPNotFound
        lfs = {"oid": self.sha256, "size": len(WEIGHTS)}
        entries: list[dict[str, Any]] = [{"type": "directory", "path": "images", "size": 0}]
        return web.json_response(
            entries + [{"type": "file", "path": path, "size": len(WEIGHTS), "lfs": lfs} for path in self.paths]
        )

    async def file(self, request: web.Request) -> web.StreamResponse:
        self.ranges.append(request.headers.get("Range"))
        start = request.http_range.start or 0 if self.knows_ranges else 0
        body = WEIGHTS[start:]
        response = web.StreamResponse(status=206 if start else 200, headers={"Content-Length": str(len(body))})
        await response.prepare(request)
        if self.breaks_after is None:
            await response.write(body)
            return response
        await response.write(body[: self.breaks_after])
        assert request.transport is not None
        request.transport.close()
        return response


def kept(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
async def url(hub: Hub) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/api/models/{owner}/{repository}/tree/main", hub.tree)
    app.router.add_get("/{owner}/{repository}/resolve/main/{path}", hub.file)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.mark.parametrize(
    "name", ["marigold/ferry-4b-GGUF", "marigold/ferry-4b-GGUF:q4_k_m", f"marigold/ferry-4b-GGUF/{NAME}"]
)
async def test_a_model_is_found_by_its_name(url: str, session: aiohttp.ClientSession, hub: Hub, name: str) -> None:
    assert await find_model_file(session, name, url) == ModelFile(
        "marigold/ferry-4b-GGUF", NAME, len(WEIGHTS), hub.sha256
    )


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("ferry-4b", "is not a model"),
        ("marigold/unknown", "has no public model"),
        ("marigold/ferry-4b-GGUF:Q2_K", "has no Q2_K; it has .*Q4_K_M.gguf, .*Q8_0.gguf"),
        ("marigold/ferry-4b-GGUF/other.gguf", "has no other.gguf"),
    ],
)
async def test_what_the_hub_does_not_have_is_said(
    url: str, session: aiohttp.ClientSession, name: str, fault: str
) -> None:
    with pytest.raises(MalformedInput, match=fault):
        await find_model_file(session, name, url)


async def test_a_model_in_parts_is_refused(url: str, session: aiohttp.ClientSession, hub: Hub) -> None:
    hub.paths = ["big-q4_k_m-00001-of-00002.gguf", "big-q4_k_m-00002-of-00002.gguf"]
    with pytest.raises(MalformedInput, match="several parts"):
        await find_model_file(session, "marigold/ferry-4b-GGUF", url)


async def test_a_hub_that_is_not_reachable_is_named(session: aiohttp.ClientSession, unused_tcp_port: int) -> None:
    with pytest.raises(Unavailable, match=f"http://127.0.0.1:{unused_tcp_port} did not list"):
        await find_model_file(session, "marigold/ferry-4b-GGUF", f"http://127.0.0.1:{unused_tcp_port}")


async def test_a_model_is_fetched_once(url: str, session: aiohttp.ClientSession, hub: Hub, tmp_path: Path) -> None:
    file = await find_model_file(session, "marigold/ferry-4b-GGUF", url)
    progress: list[tuple[int, int]] = []
    path = await fetch_model_file(session, file, tmp_path / "models", url, lambda *now: progress.append(now))
    assert path.read_bytes() == WEIGHTS
    assert await fetch_model_file(session, file, tmp_path / "models", url) == path
    assert hub.ranges == [None]
    assert (progress[0], progress[-1]) == ((0, len(WEIGHTS)), (len(WEIGHTS), len(WEIGHTS)))


async def test_a_model_is_fetched_to_the_file_that_its_server_reads(url: str, hub: Hub, tmp_path: Path) -> None:
    to = tmp_path / "models" / "model.gguf"
    for _ in range(2):
        assert await run_fetch("marigold/ferry-4b-GGUF", to, Console(quiet=True), hub=url) == 0
    assert to.read_bytes() == WEIGHTS
    assert (hub.ranges, kept(to.parent)) == ([None], [to.name])


@pytest.mark.parametrize("knows_ranges", [True, False])
async def test_a_download_that_broke_off_is_gone_on_with(
    url: str, session: aiohttp.ClientSession, hub: Hub, tmp_path: Path, knows_ranges: bool
) -> None:
    file = await find_model_file(session, "marigold/ferry-4b-GGUF", url)
    hub.breaks_after = CHUNK + 1
    with pytest.raises(Unavailable, match="Run the command again"):
        await fetch_model_file(session, file, tmp_path, url)
    hub.breaks_after, hub.knows_ranges = None, knows_ranges
    assert (await fetch_model_file(session, file, tmp_path, url)).read_bytes() == WEIGHTS
    assert hub.ranges[0] is None
    assert hub.ranges[1] is not None
    assert kept(tmp_path) == [NAME]


@pytest.mark.parametrize(("size", "sha256"), [(len(WEIGHTS), "0" * 64), (10, ""), (len(WEIGHTS) + 1, "")])
async def test_a_file_that_is_not_what_the_hub_said_is_not_kept(
    url: str, session: aiohttp.ClientSession, tmp_path: Path, size: int, sha256: str
) -> None:
    file = ModelFile("marigold/ferry-4b-GGUF", NAME, size, sha256)
    with pytest.raises(MalformedInput, match="it was deleted"):
        await fetch_model_file(session, file, tmp_path, url)
    assert kept(tmp_path) == []
