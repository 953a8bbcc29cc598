"""Wiring of the language model servers behind one queue."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp

from adapters.llama.connection import LlamaConnection
from adapters.llama.health import check_health
from adapters.llama.server import LlamaServer
from adapters.model_pool.pool import ModelPool
from adapters.model_pool.server import ModelServer
from bot.config.settings import Settings
from bot.observability.model_metrics import TokenTally, collected
from core.ports import Clock


@asynccontextmanager
async def open_model(
    settings: Settings, session: aiohttp.ClientSession, clock: Clock
) -> AsyncGenerator[ModelPool | None]:
    """Open a pool of the servers in PLUMBLINE_LLM_URL until the block ends; None if none is configured.

    Does not wait for servers: health checks find one that comes up later.
    """
    if not settings.llm_urls:
        yield None
        return
    tally = TokenTally()
    pool = ModelPool([_server(url, settings, session, tally) for url in settings.llm_urls], clock)
    with collected(lambda: pool.status, tally):
        async with pool.watched():
            yield pool


def _server(url: str, settings: Settings, session: aiohttp.ClientSession, tally: TokenTally) -> ModelServer:
    model = llama_server(url, settings, session, tally)
    connection = LlamaConnection(url, session, _api_key(settings))

    async def check() -> int:
        await check_health(connection)
        return await model.slots()

    return ModelServer(connection.host, model, slots=1, check=check)


def llama_server(url: str, settings: Settings, session: aiohttp.ClientSession, tally: TokenTally) -> LlamaServer:
    """Return one server, with the model name and the key of the settings."""
    return LlamaServer(url, session, model=settings.llm_model, api_key=_api_key(settings), on_reply=tally.add)


def _api_key(settings: Settings) -> str:
    return settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
