"""The queue, `llm check` and `doctor` on real llama.cpp servers with a tiny model of random weights."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import REGISTRY
from rich.console import Console

from bot.commands.doctor import run_doctor
from bot.commands.llm_commands import run_check
from bot.config.settings import load_settings
from bot.wiring.application import open_model
from core.model.errors import ModelUnavailable
from core.model.language_model import ChatMessage, ModelReply, ModelRequest, Role
from tests.external.llama_servers import KINDS, llama_server
from tests.fakes.random_model import write_random_model

pytestmark = pytest.mark.external


def asked(number: int, max_tokens: int = 64) -> ModelRequest:
    return ModelRequest(
        (ChatMessage(Role.USER, f"Case {number}: why?"),), max_tokens=max_tokens, requester=f"C{number}"
    )


@pytest.fixture
def random_model(tmp_path: Path) -> Path:
    return write_random_model(tmp_path / "random.gguf")


async def test_every_question_is_answered_or_refused_when_the_server_is_killed_and_it_is_used_again_when_it_is_back(
    random_model: Path,
) -> None:
    async with (
        llama_server("native", random_model, slots=2) as server,
        aiohttp.ClientSession() as session,
        open_model(load_settings(llm_url=server.url), session) as queue,
    ):
        assert queue is not None
        await queue.check_health()
        assert queue.status.slots == 2
        questions = [asyncio.create_task(queue.generate(asked(number))) for number in range(12)]
        await asyncio.wait(questions, return_when=asyncio.FIRST_COMPLETED)
        await server.kill()
        results = await asyncio.gather(*questions, return_exceptions=True)
        assert isinstance(results[-1], ModelUnavailable)
        assert all(isinstance(result, ModelReply | ModelUnavailable) for result in results)
        await queue.check_health()
        assert not queue.status.up
        await server.start()
        await queue.check_health()
        await asyncio.gather(*(queue.generate(asked(number)) for number in range(4)))
        assert queue.status.up
        tokens = REGISTRY.get_sample_value("plumbline_model_generated_tokens_total")
        assert tokens is not None
        assert tokens >= 4


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_server_can_do_is_found_out_and_is_enough(kind: str, random_model: Path) -> None:
    written = io.StringIO()
    async with llama_server(kind, random_model) as server:
        assert await run_check(load_settings(), server.url, Console(file=written, width=160)) == 0
    assert "3 of 3 replies valid under their schema" in written.getvalue()


async def test_the_doctor_says_which_model_answers(random_model: Path, tmp_path: Path) -> None:
    written = io.StringIO()
    async with llama_server("native", random_model) as server:
        await run_doctor(load_settings(llm_url=server.url, data_dir=tmp_path), Console(file=written, width=160))
    assert "with a context of 4096 tokens" in written.getvalue()
