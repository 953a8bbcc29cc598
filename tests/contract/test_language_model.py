"""What every LanguageModel does: the scripted one, servers of all kinds as fakes, and those of llama.cpp for real."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.llama.server import LlamaServer
from core.model.errors import PromptTooLong
from core.model.language_model import ChatMessage, ModelRequest, Role
from core.ports import LanguageModel
from tests.contract.queued_models import queue_of
from tests.fakes.general_servers import fake_model_server
from tests.fakes.language_model import ScriptedModel
from tests.fakes.llama_server import CONTEXT, an_answer

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"cause": {"enum": ["disk", "network"]}, "sure": {"type": "boolean"}},
    "required": ["cause", "sure"],
    "additionalProperties": False,
}
QUESTION = ModelRequest(
    (ChatMessage(Role.SYSTEM, "You help an engineer on call."), ChatMessage(Role.USER, "Why is the checkout slow?")),
    max_tokens=64,
)
SLOT_CONTEXT = 4_096  # tokens, of a real server
STRUCTURED = ModelRequest(QUESTION.messages, max_tokens=128, schema=SCHEMA)


def scripted(request: ModelRequest) -> str:
    return an_answer(
        {"seed": request.seed, **({"response_format": {"schema": request.schema}} if request.schema else {})}
    )


@pytest.fixture(
    params=[
        "scripted",
        "queue",
        "native fake",
        "python fake",
        "vllm fake",
        "ollama fake",
        "bare fake",
        pytest.param("native", marks=pytest.mark.external),
        pytest.param("python", marks=pytest.mark.external),
        pytest.param("gateway", marks=pytest.mark.external),
    ]
)
async def model(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LanguageModel]:
    kind = request.param.split()[0]
    if kind == "scripted":
        yield ScriptedModel(scripted)
        return
    if kind == "queue":
        yield await queue_of(ScriptedModel(scripted), slots=2)
        return
    async with aiohttp.ClientSession() as session:
        if "fake" in request.param:
            async with fake_model_server(kind) as fake:
                yield LlamaServer(fake.url, session, context=CONTEXT if kind == "bare" else 0)
        else:
            from tests.external.llama_servers import gateway, llama_server
            from tests.fakes.random_model import write_random_model

            weights = write_random_model(tmp_path / "random.gguf")
            async with (
                llama_server("python" if kind == "python" else "native", weights, slot_context=SLOT_CONTEXT) as server,
                gateway(server.url) as passing,
            ):
                passed = kind == "gateway"
                yield LlamaServer(passing if passed else server.url, session, context=SLOT_CONTEXT if passed else 0)


async def test_it_has_a_name_and_a_context(model: LanguageModel) -> None:
    assert await model.context_tokens() > QUESTION.max_tokens
    assert model.name


async def test_more_text_has_more_tokens_and_no_text_has_none(model: LanguageModel) -> None:
    counts = [await model.count_tokens(text) for text in ("", "the disk", "the disk is full")]
    assert counts[0] == 0 < counts[1] < counts[2]


async def test_a_reply_says_what_it_cost(model: LanguageModel) -> None:
    reply = await model.generate(QUESTION)
    assert reply.text
    assert reply.prompt_tokens >= await model.count_tokens(QUESTION.messages[-1].text)
    assert 0 <= reply.cached_tokens <= reply.prompt_tokens
    assert 0 < reply.generated_tokens <= QUESTION.max_tokens


async def test_a_structured_reply_is_valid_under_its_schema(model: LanguageModel) -> None:
    value = json.loads((await model.generate(STRUCTURED)).text)
    assert value["cause"] in {"disk", "network"}
    assert isinstance(value["sure"], bool)


async def test_a_reply_that_reaches_the_limit_says_that_it_was_cut(model: LanguageModel) -> None:
    reply = await model.generate(ModelRequest(QUESTION.messages, max_tokens=2))
    assert not reply.complete
    assert reply.generated_tokens <= 2


async def test_one_prompt_gives_as_many_replies_as_asked_for(model: LanguageModel) -> None:
    replies = await model.sample(ModelRequest(QUESTION.messages, max_tokens=16, temperature=1.0, seed=7), 6)
    assert len(replies) == 6
    assert await model.sample(QUESTION, 0) == []


async def test_every_structured_sample_is_valid_under_its_schema(model: LanguageModel) -> None:
    request = ModelRequest(STRUCTURED.messages, max_tokens=128, schema=SCHEMA, temperature=1.0)
    for reply in await model.sample(request, 3):
        assert set(json.loads(reply.text)) == {"cause", "sure"}


@pytest.mark.parametrize(
    "choices", [("yes", "no"), ("1", "2", "3", "4", "5"), ("no", "not sure", "unlikely", "unsure")]
)
async def test_the_odds_of_all_choices_add_up_to_one(model: LanguageModel, choices: tuple[str, ...]) -> None:
    odds = await model.expect(QUESTION, choices)
    assert tuple(odds) == choices
    assert sum(odds.values()) == pytest.approx(1.0)
    assert all(0.0 <= value <= 1.0 for value in odds.values())


async def test_a_prompt_that_does_not_fit_is_refused(model: LanguageModel) -> None:
    words = "word " * await model.context_tokens()
    with pytest.raises(PromptTooLong):
        await model.generate(ModelRequest((ChatMessage(Role.USER, words),)))


async def test_a_prompt_whose_reply_would_not_fit_is_refused(model: LanguageModel) -> None:
    with pytest.raises(PromptTooLong):
        await model.generate(ModelRequest(QUESTION.messages, max_tokens=await model.context_tokens()))
