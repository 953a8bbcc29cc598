"""From PLUMBLINE_LLM_URL to a model that answers, over HTTP."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from prometheus_client import REGISTRY

from adapters.model_pool.server import FAILURES, BreakerState
from bot.config.settings import load_settings
from bot.wiring.models import open_model
from core.model.errors import ModelUnavailable
from core.model.language_model import ChatMessage, ModelRequest, Role
from tests.fakes.clock import FakeClock
from tests.fakes.llama_server import fake_llama_server

QUESTION = ModelRequest((ChatMessage(Role.USER, "Why is the disk full?"),), max_tokens=32)


async def test_without_an_address_there_is_no_model() -> None:
    async with aiohttp.ClientSession() as session, open_model(load_settings(), session, FakeClock()) as pool:
        assert pool is None


@pytest.mark.parametrize(("kind", "slots"), [("native", 4), ("python", 1)])
async def test_a_server_is_asked_with_its_key_and_measured(kind: str, slots: int) -> None:
    async with fake_llama_server(kind) as server, aiohttp.ClientSession() as session:
        server.api_key = "key"
        settings = load_settings(llm_url=server.url, llm_api_key="key", llm_model="ferry")
        async with open_model(settings, session, FakeClock()) as pool:
            assert pool is not None
            await pool.check_health()
            assert pool.status.servers[0].slots == slots
            assert pool.name == "ferry"
            assert (await pool.generate(QUESTION)).text
            generated = REGISTRY.get_sample_value("plumbline_model_generated_tokens_total")
            assert generated is not None
            assert generated > 0
    assert REGISTRY.get_sample_value("plumbline_model_generated_tokens_total") is None


async def test_a_server_that_is_not_there_is_no_reason_not_to_start(unused_tcp_port: int) -> None:
    async with aiohttp.ClientSession() as session:
        settings = load_settings(llm_url=f"http://127.0.0.1:{unused_tcp_port}")
        async with open_model(settings, session, FakeClock()) as pool:
            assert pool is not None
            for _ in range(FAILURES):
                await pool.check_health()
            assert pool.status.servers[0].breaker is BreakerState.OPEN
            with pytest.raises(ModelUnavailable, match="plumbline doctor"):
                await pool.generate(QUESTION)


async def test_a_python_server_is_well_also_while_it_works_on_its_one_request() -> None:
    async with fake_llama_server("python") as server, aiohttp.ClientSession() as session:
        server.waits = asyncio.Event()
        async with open_model(load_settings(llm_url=server.url), session, FakeClock()) as pool:
            assert pool is not None
            await pool.check_health()
            asked = asyncio.create_task(pool.generate(QUESTION))
            await server.waiting.wait()
            await pool.check_health()
            assert pool.status.servers[0].breaker is BreakerState.CLOSED
            assert pool.status.servers[0].busy == 1
            server.waits.set()
            assert (await asked).text
