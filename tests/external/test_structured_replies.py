"""Every form that the product asks a model for is kept by a model that knows nothing: valid by construction."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from adapters.llama.server import LlamaServer
from core.answering.model_answer import Translated
from core.model.language_model import ChatMessage, ModelRequest, Role
from core.model_calls.choice import schema_of
from core.model_calls.prompts import answering as prompts
from core.ports import ToolParameter
from core.rca.agent.actions import Choices, Snapshots, schema
from tests.external.llama_servers import llama_server
from tests.fakes.investigation import SERVICES, FakeTool
from tests.fakes.random_model import Shape, write_random_model

pytestmark = pytest.mark.external

REPLIES = 300  # of each form: 0 invalid ones say that fewer than 1 in 100 would be
SLOTS = 16
TOOLS = (FakeTool(), FakeTool("search", parameters=(ToolParameter("words", "what to look for"),)))
ACTIONS = {
    "the next action": schema(Choices(TOOLS, SERVICES, Snapshots(), set(), must_finalise=False)),
    "the finding": schema(Choices(TOOLS, SERVICES, Snapshots(), set(), must_finalise=True)),
}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_model(tmp_path_factory.mktemp("model") / "random.gguf", Shape(layers=2, width=64))


@pytest.fixture
async def model(weights: Path) -> AsyncIterator[LlamaServer]:
    async with (
        llama_server("native", weights, slots=SLOTS, slot_context=8_192) as server,
        aiohttp.ClientSession() as session,
    ):
        yield LlamaServer(server.url, session)


@pytest.mark.parametrize("kind", [prompts.Rewritten, Translated], ids=lambda kind: kind.__name__)
async def test_no_reply_of_a_type_is_invalid(kind: type, model: LlamaServer) -> None:
    adapter = TypeAdapter(kind)
    replies = await _replies(model, schema_of(kind))
    assert len([adapter.validate_json(text) for text in replies]) == REPLIES


@pytest.mark.parametrize("form", ACTIONS)
async def test_no_reply_under_a_schema_of_the_agent_is_invalid(form: str, model: LlamaServer) -> None:
    validator = Draft202012Validator(ACTIONS[form])
    faults = Counter(
        validator.is_valid(TypeAdapter(Any).validate_json(text)) for text in await _replies(model, ACTIONS[form])
    )
    assert faults == {True: REPLIES}


async def _replies(model: LlamaServer, asked: dict[str, Any]) -> list[str]:
    """REPLIES replies with different seeds, none of them asked for a second time."""
    told: list[object] = []
    model._on_reply = told.append
    free = asyncio.Semaphore(SLOTS)

    async def one(seed: int) -> str:
        prompt = (ChatMessage(Role.USER, "Say something."),)
        request = ModelRequest(prompt, max_tokens=8_000, temperature=1.0, seed=seed, schema=asked, deadline=600.0)
        async with free:
            return (await model.generate(request)).text

    texts = await asyncio.gather(*map(one, range(REPLIES)))
    assert len(told) == REPLIES
    return texts
