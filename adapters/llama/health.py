"""The health of a llama.cpp server, also while it works."""

from __future__ import annotations

from adapters.llama.connection import LlamaConnection, Refused


async def check_health(connection: LlamaConnection) -> None:
    """Raises ModelUnavailable if the server does not answer, or is still reading its model."""
    try:
        await connection.get("health")
    except Refused:
        # llama_cpp.server has no such page, and of those that it has all others wait until its one request is done.
        await connection.get("openapi.json")
