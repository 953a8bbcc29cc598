"""The health check of a llama.cpp server, which also works while it is busy."""

from __future__ import annotations

from adapters.llama.connection import LlamaConnection, Refused


async def check_health(connection: LlamaConnection) -> None:
    """Raise ModelUnavailable if the server does not answer, or is still loading its model."""
    try:
        await connection.get("health")
    except Refused:
        # llama_cpp.server has no health endpoint, and its others wait for the current request.
        await connection.get("openapi.json")
