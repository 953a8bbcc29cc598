"""From PLUMBLINE_LLM_URL to a model that answers, over HTTP."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from prometheus_client import REGISTRY

from bot.config.settings import load_settings
from bot.wiring.application import open_model
from core.model.errors import ModelUnavailable
from core.model.language_model import ChatMessage, ModelRequest, Role
from tests.fakes.llama_server import fake_llama_server

QUESTION = ModelRequest((ChatMessage(Role.USER, "Why is the disk full?"),), max_tokens=32)


async def test_without_an_address_there_is_no_model() -> None:
    async with aiohttp.ClientSession() as session, open_model(load_settings(), session) as queue:
        assert queue is None


@pytest.mark.parametrize(("kind", "slots"), [("native", 4), ("python", 1)])
async def test_a_server_is_asked_with_its_key_and_measured(kind: str, slots: int) -> None:
    async with fake_llama_server(kind) as server, aiohttp.ClientSession() as session:
        server.api_key = "key"
        settings = load_settings(llm_url=server.url, llm_api_key="key", llm_model="ferry")
        async with open_model(settings, session) as queue:
            assert queue is not None
            await queue.check_health()
            assert queue.status.slots == slots
            assert queue.name == "ferry"
            assert (await queue.generate(QUESTION)).text
            generated = REGISTRY.get_sample_value("plumbline_model_generated_tokens_total")
            assert generated is not None
            assert generated > 0
    assert REGISTRY.get_sample_value("plumbline_model_generated_tokens_total") is None


async def test_the_slots_of_several_servers_behind_a_load_balancer_are_those_that_the_operator_names() -> None:
    async with (
        fake_llama_server("native") as server,
        aiohttp.ClientSession() as session,
        open_model(load_settings(llm_url=server.url, llm_parallel=12), session) as queue,
    ):
        assert queue is not None
        await queue.check_health()
        assert queue.status.slots == 12
        assert len(await queue.sample(QUESTION, 6)) == 6


async def test_a_server_that_is_not_there_is_no_reason_not_to_start(unused_tcp_port: int) -> None:
    async with aiohttp.ClientSession() as session:
        settings = load_settings(llm_url=f"http://127.0.0.1:{unused_tcp_port}")
        async with open_model(settings, session) as queue:
            assert queue is not None
            await queue.check_health()
            assert not queue.status.up
            with pytest.raises(ModelUnavailable, match="plumbline doctor"):
                await queue.generate(QUESTION)


async def test_a_python_server_is_well_also_while_it_works_on_its_one_request() -> None:
    async with fake_llama_server("python") as server, aiohttp.ClientSession() as session:
        server.waits = asyncio.Event()
        async with open_model(load_settings(llm_url=server.url), session) as queue:
            assert queue is not None
            await queue.check_health()
            asked = asyncio.create_task(queue.generate(QUESTION))
            await server.waiting.wait()
            await queue.check_health()
            assert queue.status.up
            assert queue.status.busy == 1
            server.waits.set()
            assert (await asked).text
