"""Every reranker behind its port: the fake, and a server's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from adapters.llama.connection import LlamaConnection
from adapters.reranker import LONGEST, RerankerSection, ServerReranker
from core.model.errors import ConfigurationError, ModelUnavailable
from core.ports import Reranker
from tests.fakes.hosts import opened_host
from tests.fakes.llama_server import FakeLlamaServer, fake_llama_server
from tests.fakes.reranker import FakeReranker

TEXTS = ["one page", "two pages about disk space", "disk", "another page"]


@asynccontextmanager
async def fake() -> AsyncIterator[tuple[Reranker, Callable[[], None]]]:
    reranker = FakeReranker("disk")
    yield reranker.order, lambda: setattr(reranker, "failing", True)


@asynccontextmanager
async def server() -> AsyncIterator[tuple[Reranker, Callable[[], None]]]:
    async with fake_llama_server() as llama, aiohttp.ClientSession() as session:
        yield reranker_of(llama, session).order, lambda: setattr(llama, "status", 503)


def reranker_of(llama: FakeLlamaServer, session: aiohttp.ClientSession, deadline: float = 30.0) -> ServerReranker:
    return ServerReranker(LlamaConnection(llama.url, session), deadline=deadline)


@pytest.fixture(params=[fake, server], ids=lambda each: each.__name__)
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Reranker, Callable[[], None]]]:
    async with request.param() as pair:
        yield pair


async def test_the_best_text_comes_first_and_those_rated_alike_stay_in_their_order(
    opened: tuple[Reranker, Callable[[], None]],
) -> None:
    reranker, _ = opened
    assert await reranker("disk", TEXTS) == [1, 2, 0, 3]
    assert await reranker("disk", ["\ud800\x00", "", "disk"]) == [2, 0, 1]


async def test_a_reranker_that_fails_is_unavailable(opened: tuple[Reranker, Callable[[], None]]) -> None:
    reranker, broken = opened
    broken()
    with pytest.raises(ModelUnavailable):
        await reranker("disk", TEXTS)


def rated(*rows: tuple[object, object]) -> dict[str, Any]:
    return {"results": [{"index": index, "relevance_score": score} for index, score in rows]}


BAD = {
    "a place that there is not": rated((0, 0.9), (4, 0.1), (1, 0.3), (2, 0.2)),
    "a place before the first": rated((-1, 0.9), (0, 0.1), (1, 0.3), (2, 0.2)),
    "a place twice": rated((0, 0.9), (0, 0.8), (1, 0.3), (2, 0.2), (3, 0.1)),
    "fewer": rated((0, 0.9), (1, 0.8)),
    "none": rated(),
    "no number": rated((0, float("nan")), (1, 0.8), (2, 0.3), (3, 0.2)),
    "endless": rated((0, float("inf")), (1, 0.8), (2, 0.3), (3, 0.2)),
    "words": rated((0, "very"), (1, 0.8), (2, 0.3), (3, 0.2)),
    "without scores": {"results": [{"index": 0}]},
    "another form": [{"index": 0, "score": 0.9}],
    "an error": {"error": "this server does not support reranking"},
}


async def test_a_reply_that_does_not_rate_every_text_once_is_no_order() -> None:
    accepted: list[str] = []
    async with fake_llama_server() as llama, aiohttp.ClientSession() as session:
        for name, reply in BAD.items():
            llama.ranking = reply
            try:
                accepted.append(f"{name}: {await reranker_of(llama, session).order('disk', TEXTS)}")
            except ModelUnavailable:
                continue
    assert accepted == []


async def test_a_server_that_failed_is_left_alone_for_a_while() -> None:
    async with fake_llama_server() as llama, aiohttp.ClientSession() as session:
        reranker = reranker_of(llama, session)
        llama.ranking = rated()
        for _ in range(3):
            with pytest.raises(ModelUnavailable):
                await reranker.order("disk", TEXTS)
        assert len(llama.bodies) == 1


async def test_a_server_that_hangs_is_not_waited_for() -> None:
    async with fake_llama_server() as llama, aiohttp.ClientSession() as session:
        llama.waits = asyncio.Event()
        with pytest.raises(ModelUnavailable, match="did not answer in time"):
            await reranker_of(llama, session, deadline=0.01).order("disk", TEXTS)
        llama.waits.set()


async def test_a_server_gets_its_key_its_model_and_texts_of_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    section = RerankerSection(url="http://127.0.0.1:1/v1", model="bge-reranker", token_env="RERANKER_KEY")
    async with fake_llama_server() as llama, opened_host() as host:
        with pytest.raises(ConfigurationError, match="RERANKER_KEY"):
            section.open(host)
        monkeypatch.setenv("RERANKER_KEY", "s3cret")
        llama.api_key = "s3cret"
        reranker = section.model_copy(update={"url": f"{llama.url}v1"}).open(host)
        assert await reranker("disk", ["x" * 10_000, "disk"]) == [1, 0]
        assert llama.bodies == [{"query": "disk", "documents": ["x" * LONGEST, "disk"], "model": "bge-reranker"}]
