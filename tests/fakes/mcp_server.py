"""An MCP server over Streamable HTTP on loopback."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from mcp.server.mcpserver import MCPServer


class _Served(uvicorn.Server):
    """Tells when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def served_mcp(offered: MCPServer) -> AsyncIterator[str]:
    """The address of this server while it runs."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        server = _Served(uvicorn.Config(offered.streamable_http_app(), log_config=None, ws="none"))
        serving = asyncio.create_task(server.serve([door]))
        await server.up.wait()
        yield f"http://127.0.0.1:{door.getsockname()[1]}/mcp"
        server.should_exit = True
        await serving
