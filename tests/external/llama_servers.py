"""Both real llama.cpp servers as processes on loopback, with a tiny model of random weights."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.external.monitoring import answers, free_port

READY = 60.0  # seconds that a server may take to start
STOPPED = 20.0  # seconds after which a server should have noticed that its client is gone
NATIVE = Path(__file__).with_name("native_llama_server.py")
KINDS = ("native", "python")


@dataclass(slots=True)
class RunningServer:
    """A server that can be killed, and started again at the same address. What it says goes to `log`."""

    kind: str
    url: str
    command: tuple[str, ...]
    log: Path
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self.log.open("wb") as output:
            self.process = await asyncio.create_subprocess_exec(*self.command, stdout=output, stderr=output)
        async with asyncio.timeout(READY):
            await answers(self.url + ("/health" if self.kind == "native" else "/openapi.json"))

    async def kill(self) -> None:
        """As `kill -9` does."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    async def idle(self) -> None:
        """Wait until the server has noticed that its client is gone, and works no more: its slots or its log say so."""
        async with asyncio.timeout(STOPPED), aiohttp.ClientSession() as session:
            while True:
                if await self._no_slot_works(session) if self.kind == "native" else self._has_said("disconnected"):
                    return
                await asyncio.sleep(0.05)

    async def _no_slot_works(self, session: aiohttp.ClientSession) -> bool:
        async with session.get(f"{self.url}/slots") as response:
            return not any(slot["is_processing"] for slot in await response.json())

    def _has_said(self, word: str) -> bool:
        return word in self.log.read_text(encoding="utf-8", errors="replace").lower()


@asynccontextmanager
async def llama_server(
    kind: str,
    model: Path,
    *,
    slots: int = 4,
    slot_context: int = 4_096,
    api_key: str = "",
    embedding: bool = False,
    logits_all: bool = True,
) -> AsyncIterator[RunningServer]:
    """A server of one of KINDS. `slots` is what the native one does at once; the other does one thing at a time."""
    port = free_port()
    if kind == "native":
        mode = (api_key, "embedding") if embedding else (api_key,)
        command = (sys.executable, str(NATIVE), str(model), str(port), str(slots), str(slots * slot_context), *mode)
    else:
        options = {
            "model": model,
            "host": "127.0.0.1",
            "port": port,
            "n_ctx": slot_context,
            "n_threads": 1,
            "n_threads_batch": 1,
            "interrupt_requests": False,  # by default a stream breaks off when the next request comes
            "embedding": embedding,
            "logits_all": logits_all,
            **({"api_key": api_key} if api_key else {}),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = (sys.executable, "-u", "-m", "llama_cpp.server", *words)
    with tempfile.TemporaryDirectory(prefix="plumbline-llama-") as folder:
        server = RunningServer(kind, f"http://127.0.0.1:{port}", command, Path(folder) / "log")
        await server.start()
        try:
            yield server
        finally:
            await server.kill()


@asynccontextmanager
async def gateway(server: str) -> AsyncIterator[str]:
    """The address of a gateway that passes nothing but `/v1` to a server: its own paths cannot be reached."""

    async def forward(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, f"{server}{request.path}", data=body, headers=headers) as answer,
        ):
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    app = web.Application()
    app.router.add_route("*", "/v1/{path:.*}", forward)
    async with TestServer(app) as passing:
        yield str(passing.make_url("/"))
