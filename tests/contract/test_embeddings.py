"""Every embedding model behind its port: the fake, the embedded one, sentence-transformers, and a server's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adapters.embeddings import server as sentence_transformers
from adapters.embeddings.embedded import EmbeddedEmbedder
from adapters.embeddings.server import SentenceTransformerEmbedder, ServerEmbedder
from core.model.errors import ConfigurationError, ModelUnavailable
from core.ports import Embedder
from tests.cases import every_case
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.llama_server import fake_llama_server

TEXTS = ["one", "one two three", "", "\ud800", "日本語", "word " * 5_000, "\x00\u200b"]

Broken = Callable[[], None]


class Library:
    """Stands in for sentence-transformers: a direction for each number of words."""

    failing = False

    def __init__(self, model: str, device: str) -> None: ...

    def get_embedding_dimension(self) -> int:
        return 2

    def encode(self, texts: Sequence[str], **options: object) -> NDArray[np.float64]:
        if self.failing:
            raise RuntimeError("out of memory")
        angles = np.array([len(text.split()) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1) if texts else np.array([])


loaded = cache(EmbeddedEmbedder)


@asynccontextmanager
async def fake(_: pytest.MonkeyPatch) -> AsyncIterator[tuple[Embedder, Broken]]:
    model = FakeEmbedder({"one": 0, "two": 1})
    yield model, lambda: setattr(model, "failing", True)


@asynccontextmanager
async def embedded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Embedder, Broken]]:
    model = loaded()
    yield model, lambda: monkeypatch.setattr(model, "_session", None)


@asynccontextmanager
async def library(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Embedder, Broken]]:
    monkeypatch.setattr(sentence_transformers, "import_module", lambda _: SimpleNamespace(SentenceTransformer=Library))
    yield SentenceTransformerEmbedder("some-model"), lambda: monkeypatch.setattr(Library, "failing", True)


@asynccontextmanager
async def server(_: pytest.MonkeyPatch) -> AsyncIterator[tuple[Embedder, Broken]]:
    async with fake_llama_server() as llama:
        yield ServerEmbedder(f"{llama.url}v1#tiny:2"), lambda: setattr(llama, "status", 503)


@pytest.fixture(params=[fake, embedded, library, server], ids=lambda each: each.__name__)
async def opened(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Embedder, Broken]]:
    async with request.param(monkeypatch) as pair:
        yield pair


async def test_every_text_has_a_row_of_unit_length_in_its_place(opened: tuple[Embedder, Broken]) -> None:
    model, _ = opened
    rows = await model.embed_passages(TEXTS)
    assert (rows.shape, rows.dtype) == ((len(TEXTS), model.dimensions), np.float32)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for text, row in zip(TEXTS[:3], rows, strict=False):
        assert np.allclose(await model.embed_query(text), row, atol=1e-5)


async def test_no_texts_have_no_rows(opened: tuple[Embedder, Broken]) -> None:
    assert (await opened[0].embed_passages([])).shape == (0, opened[0].dimensions)


async def test_a_model_that_fails_is_unavailable(opened: tuple[Embedder, Broken]) -> None:
    model, broken = opened
    broken()
    with pytest.raises(ModelUnavailable):
        await model.embed_query("one")
    with pytest.raises(ModelUnavailable):
        await model.embed_passages(["one", "two"])


@pytest.mark.parametrize("name", ["intfloat/multilingual-e5-small", "/models/e5_base_v2", "org/E5-large"])
async def test_an_e5_model_is_told_which_text_is_the_question(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Listening(Library):
        def encode(self, texts: Sequence[str], **options: object) -> NDArray[np.float64]:
            seen.extend(texts)
            return super().encode(texts, **options)

    monkeypatch.setattr(
        sentence_transformers, "import_module", lambda _: SimpleNamespace(SentenceTransformer=Listening)
    )
    model = SentenceTransformerEmbedder(name)
    await model.embed_passages(["the page"])
    await model.embed_query("the question")
    assert seen == ["passage: the page", "query: the question"]


async def test_a_server_gets_its_key_and_an_e5_model_its_words() -> None:
    async with fake_llama_server() as llama:
        llama.api_key = "s3cret"
        model = ServerEmbedder(f"{llama.url}v1#multilingual-e5-small:2", "s3cret")
        assert (model.name, model.dimensions) == ("multilingual-e5-small:2", 2)
        assert np.allclose(await model.embed_query("the question"), np.array([3, 12]) / np.hypot(3, 12)), "query: the …"
        with pytest.raises(ModelUnavailable, match="PLUMBLINE_EMBEDDINGS_API_KEY"):
            await ServerEmbedder(f"{llama.url}#tiny:2").embed_query("one")


async def test_a_text_that_is_too_long_for_a_server_is_read_as_far_as_it_goes() -> None:
    async with fake_llama_server() as llama:
        llama.longest_embedded = 50
        rows = await ServerEmbedder(f"{llama.url}#tiny:2").embed_passages(["one", "x " * 300, "one two"])
        assert np.allclose(rows[[0, 2]], [np.array([3, 4]) / 5, np.array([3, 8]) / np.hypot(3, 8)])
        assert rows[1][1] > rows[2][1]


@every_case(
    "sent",
    [
        {"data": []},
        {"data": [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [1.0, float("nan")]}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"error": "no"},
        [],
    ],
)
async def test_what_is_no_vector_of_the_length_that_was_named_is_refused(sent: Any) -> None:
    async with fake_llama_server() as llama:
        llama.embeddings = sent
        with pytest.raises(ModelUnavailable):
            await ServerEmbedder(f"{llama.url}#tiny:2").embed_query("one")


@pytest.mark.parametrize(
    "address", ["http://host:1/v1", "http://host:1/v1#tiny", "http://host:1#tiny:0", "ftp://h#a:2"]
)
def test_an_address_without_model_or_length_says_how_it_is_written(address: str) -> None:
    with pytest.raises(ConfigurationError, match="MODEL:DIMENSIONS"):
        ServerEmbedder(address)
