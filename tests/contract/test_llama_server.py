"""What the model adapter makes of servers that refuse, break off, wait or talk nonsense."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from adapters.llama import connection
from adapters.llama import server as server_module
from adapters.llama.connection import LlamaConnection, RequestRefused, TooLong
from adapters.llama.dialect import Dialect, dialect_of
from adapters.llama.server import LlamaServer
from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ChatMessage, ModelReply, ModelRequest, Role
from tests.fakes.general_servers import fake_model_server
from tests.fakes.llama_server import CONTEXT, SLOTS, FakeLlamaServer, fake_llama_server, served

QUESTION = ModelRequest((ChatMessage(Role.USER, "Why is the checkout slow?"),), max_tokens=64)


@pytest.fixture(params=["native", "python", "vllm", "ollama"])
async def fake(request: pytest.FixtureRequest) -> AsyncIterator[FakeLlamaServer]:
    async with fake_model_server(request.param) as server:
        yield server


@pytest.mark.parametrize(("status", "retry_after"), [(503, 7.0), (429, 7.0), (503, None)])
async def test_a_busy_server_says_when_to_come_back(
    status: int, retry_after: float | None, fake: FakeLlamaServer, session: aiohttp.ClientSession
) -> None:
    fake.status, fake.retry_after = status, "" if retry_after is None else "7"
    with pytest.raises(ModelUnavailable) as caught:
        await LlamaServer(fake.url, session).generate(replace(QUESTION, deadline=6.0))
    assert caught.value.retry_after == retry_after


async def test_a_server_that_asks_to_wait_is_asked_again_within_the_deadline(
    fake: FakeLlamaServer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        fake.status = 200

    model = LlamaServer(fake.url, session)
    await model.context_tokens()
    fake.status, fake.retry_after = 429, "7"
    monkeypatch.setattr("adapters.llama.server.asyncio.sleep", sleep)
    assert (await model.generate(QUESTION)).text
    assert pauses == [7.0]


@pytest.mark.parametrize(("configured", "used"), [("", "warm"), ("cold", "cold")])
async def test_a_server_that_was_started_without_a_model_is_asked_for_one_of_its_own(
    configured: str, used: str, session: aiohttp.ClientSession
) -> None:
    async with served(FakeLlamaServer("native", routed={"cold": "unloaded", "warm": "loaded"})) as fake:
        model = LlamaServer(fake.url, session, model=configured)
        assert await model.context_tokens() == CONTEXT
        assert (await model.generate(QUESTION)).text
        assert await model.count_tokens("three small words") == 3
        assert (model.name, {body["model"] for body in fake.bodies}) == (used, {used})


async def test_a_server_that_refuses_as_too_long_is_believed(
    fake: FakeLlamaServer, session: aiohttp.ClientSession
) -> None:
    model = LlamaServer(fake.url, session)
    await model.context_tokens()
    fake.status, fake.error = 400, {"code": 400, "type": "exceed_context_size_error", "message": "too long"}
    with pytest.raises(PromptTooLong):
        await model.generate(QUESTION)


async def test_what_does_not_fit_is_never_sent(fake: FakeLlamaServer, session: aiohttp.ClientSession) -> None:
    with pytest.raises(PromptTooLong):
        await LlamaServer(fake.url, session).generate(replace(QUESTION, max_tokens=CONTEXT))
    assert not fake.chats


async def test_a_stream_that_breaks_off_is_no_reply(fake: FakeLlamaServer, session: aiohttp.ClientSession) -> None:
    fake.breaks_off = True
    with pytest.raises(ModelUnavailable):
        await LlamaServer(fake.url, session).generate(QUESTION)


async def test_a_reply_without_end_is_not_read_to_its_end(
    fake: FakeLlamaServer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_BODY", 1_000)
    fake.script = lambda _: "word " * 50
    with pytest.raises(ModelUnavailable, match="more than"):
        await LlamaServer(fake.url, session).generate(QUESTION)


async def test_a_deadline_ends_a_request_and_its_connection(
    fake: FakeLlamaServer, session: aiohttp.ClientSession
) -> None:
    fake.waits = asyncio.Event()
    model = LlamaServer(fake.url, session)
    await model.context_tokens()
    with pytest.raises(ModelUnavailable, match="in time"):
        await model.generate(replace(QUESTION, deadline=0.2))
    fake.waits.set()
    await asyncio.wait_for(fake.left.wait(), 10)


async def test_no_error_tells_the_password_or_the_key(session: aiohttp.ClientSession) -> None:
    model = LlamaServer("http://user:hunter2@127.0.0.1:9/v1", session, api_key="open-sesame")
    with pytest.raises(ModelUnavailable) as caught:
        await model.generate(QUESTION)
    assert "127.0.0.1:9" in str(caught.value)
    assert not {"hunter2", "open-sesame"} & set(str(caught.value).replace("@", " ").replace(":", " ").split())


async def test_a_wrong_key_is_named_as_what_it_is(fake: FakeLlamaServer, session: aiohttp.ClientSession) -> None:
    fake.api_key = "open-sesame"
    with pytest.raises(ModelUnavailable, match="API key"):
        await LlamaServer(fake.url, session, api_key="guess").generate(QUESTION)
    assert (await LlamaServer(fake.url, session, api_key="open-sesame").generate(QUESTION)).text


async def test_a_server_that_is_something_else_is_said_to_be(session: aiohttp.ClientSession) -> None:
    async with fake_llama_server("something else") as fake:
        with pytest.raises(ModelUnavailable, match="neither"):
            await LlamaServer(fake.url.rstrip("/") + "/nowhere", session).generate(QUESTION)


async def test_samples_of_a_native_server_share_one_prompt(session: aiohttp.ClientSession) -> None:
    told: list[ModelReply] = []
    async with fake_llama_server("native") as fake:
        replies = await LlamaServer(fake.url, session, on_reply=told.append).sample(QUESTION, SLOTS + 2)
        assert [body["n"] for body in fake.chats] == [SLOTS, 2]
    assert replies == told
    assert [reply.cached_tokens < reply.prompt_tokens for reply in replies] == [
        True,
        *[False] * (SLOTS - 1),
        True,
        False,
    ]


async def test_samples_of_a_python_server_are_drawn_one_after_the_other_with_their_own_seeds(
    session: aiohttp.ClientSession,
) -> None:
    async with fake_llama_server("python") as fake:
        await LlamaServer(fake.url, session).sample(replace(QUESTION, seed=5), 3)
        assert [body["seed"] for body in fake.chats] == [5, 6, 7]


@pytest.mark.parametrize("fake", ["native", "python", "vllm"], indirect=True)
async def test_probabilities_are_read_from_one_reply(fake: FakeLlamaServer, session: aiohttp.ClientSession) -> None:
    fake.odds = {"no": 0.75}
    odds = await LlamaServer(fake.url, session).expect(QUESTION, ("yes", "no"))
    assert odds == pytest.approx({"yes": 0.25, "no": 0.75})
    assert len(fake.chats) == 1


@pytest.mark.parametrize("fake", ["native", "python", "vllm"], indirect=True)
async def test_labels_that_begin_alike_are_told_apart_by_another_reply(
    fake: FakeLlamaServer, session: aiohttp.ClientSession
) -> None:
    fake.odds = {"un": 0.75}
    odds = await LlamaServer(fake.url, session).expect(QUESTION, ("yes", "unlikely", "unsure"))
    assert odds["yes"] == pytest.approx(0.25)
    assert odds["unlikely"] + odds["unsure"] == pytest.approx(0.75)
    assert fake.chats[-1]["max_tokens"] < QUESTION.max_tokens
    assert len(fake.chats) == 2


async def test_a_server_that_tells_no_probabilities_is_asked_for_samples(session: aiohttp.ClientSession) -> None:
    async with fake_llama_server("python") as fake:
        fake.logits_all = False
        fake.script = lambda body: '"yes"' if body["seed"] % 4 else '"no"'
        odds = await LlamaServer(fake.url, session, draws=16).expect(QUESTION, ("yes", "no"))
        assert len(fake.chats) == 16
    assert odds == {"yes": 0.75, "no": 0.25}


async def test_one_job_waits_for_the_slot_that_has_its_evidence(session: aiohttp.ClientSession) -> None:
    evidence = ChatMessage(Role.SYSTEM, "The disk is full.")
    asked = [replace(QUESTION, messages=(evidence, *QUESTION.messages, ChatMessage(Role.USER, text))) for text in "abc"]
    async with fake_llama_server("native") as fake:
        fake.waits = asyncio.Event()
        model = LlamaServer(fake.url, session)
        await model.context_tokens()
        tasks = [asyncio.create_task(model.expect(request, ("yes", "no"))) for request in asked]
        await asyncio.wait_for(fake.waiting.wait(), 10)
        assert len(fake.chats) == 1
        fake.waits.set()
        await asyncio.gather(*tasks)
        assert len(fake.chats) == 3


async def test_a_server_that_takes_long_to_tell_what_it_is_is_asked_once(
    fake: FakeLlamaServer, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, asked = asyncio.Event(), 0

    async def slow(connection: LlamaConnection, *told: Any) -> Dialect:
        nonlocal asked
        asked += 1
        await ready.wait()
        return await dialect_of(connection, *told)

    monkeypatch.setattr(server_module, "dialect_of", slow)
    model = LlamaServer(fake.url, session)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await model.check_health()
    ready.set()
    assert await model.check_health() >= 1
    assert asked == 1


@pytest.mark.parametrize("kind", [RequestRefused, TooLong])
def test_a_refusal_can_be_kept_and_raised_again(kind: type[RequestRefused | TooLong]) -> None:
    kept = copy.copy(kind("The model server refused.", "no such field"))
    assert (str(kept), kept.reason) == ("The model server refused.", "no such field")
