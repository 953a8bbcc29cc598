"""SentenceTransformerEmbedder, over a library that stands in for sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from adapters.embeddings import sentence_transformers
from adapters.embeddings.sentence_transformers import SentenceTransformerEmbedder
from core.model.errors import ModelUnavailable


class Library:
    def __init__(self, model: str, device: str) -> None:
        self._dimensions = 2

    def get_embedding_dimension(self) -> int:
        return self._dimensions

    def encode(self, texts: Sequence[str], **options: object) -> NDArray[np.float64]:
        if "crash" in texts:
            raise RuntimeError("out of memory")
        return np.tile([0.6, 0.8], (len(texts), 1))


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> SentenceTransformerEmbedder:
    monkeypatch.setattr(
        sentence_transformers, "import_module", lambda name: SimpleNamespace(SentenceTransformer=Library)
    )
    return SentenceTransformerEmbedder("some-model")


async def test_texts_become_rows(embedder: SentenceTransformerEmbedder) -> None:
    rows = await embedder.embed_passages(["one", "two"])
    assert (rows.shape, rows.dtype) == ((2, embedder.dimensions), np.float32)
    assert (await embedder.embed_query("one")).tolist() == rows[0].tolist()


async def test_a_model_that_fails_is_unavailable(embedder: SentenceTransformerEmbedder) -> None:
    with pytest.raises(ModelUnavailable, match="some-model failed: out of memory"):
        await embedder.embed_query("crash")


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
