"""WordVectorEmbedder, over the vectors that the extra brings."""

from __future__ import annotations

import numpy as np
import pytest

from adapters import word_vectors
from adapters.word_vectors import BATCH, WordVectorEmbedder
from core.model.errors import ConfigurationError


@pytest.fixture(scope="module")
def embedder() -> WordVectorEmbedder:
    pytest.importorskip("safetensors", reason="the extra `words` is installed where it has wheels")
    return WordVectorEmbedder()


async def test_texts_become_rows_of_unit_length(embedder: WordVectorEmbedder) -> None:
    rows = await embedder.embed_passages([f"page {number}" for number in range(BATCH + 1)])
    assert (rows.shape, rows.dtype) == ((BATCH + 1, embedder.dimensions), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(rows[BATCH], await embedder.embed_query(f"page {BATCH}"))


async def test_other_words_for_the_same_are_near(embedder: WordVectorEmbedder) -> None:
    asked = await embedder.embed_query("how do I reboot the machine?")
    same, other = await embedder.embed_passages(["Restarting a server", "Paying an invoice"])
    assert asked @ same > asked @ other + 0.1


async def test_an_empty_text_has_a_vector_too(embedder: WordVectorEmbedder) -> None:
    assert np.linalg.norm(await embedder.embed_query("")) == pytest.approx(1)


async def test_a_text_that_is_no_unicode_is_read_as_far_as_it_is(embedder: WordVectorEmbedder) -> None:
    broken = await embedder.embed_query("restart\ud800the server")
    assert broken @ await embedder.embed_query("restart the server") > 0.5


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"plumbline\[words\]"):
        WordVectorEmbedder()
