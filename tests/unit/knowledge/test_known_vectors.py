"""Known vectors stand in for what a model would read, and only for that."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from adapters.known_vectors import KnownVectors, digest
from core.knowledge.passages import packed
from tests.fakes.embedder import FakeEmbedder

SENSES = {"canary": 0, "rollback": 1}


def written(folder: Path, model: str, *texts: str) -> Path:
    file, vectors = folder / "vectors.bin", FakeEmbedder(SENSES)
    records = b"".join(digest(text) + packed(vectors._vector(text).astype(np.float32)) for text in texts)
    file.write_bytes(model.encode() + b"\n" + records)
    return file


async def test_only_unknown_texts_are_read_by_the_model(tmp_path: Path) -> None:
    model = FakeEmbedder(SENSES)
    known = KnownVectors(model, written(tmp_path, model.name, "canary", "rollback"))
    texts = ["rollback", "canary rollback", "canary", "rollback"]
    rows = await known.embed_passages(texts)
    assert model.asked == ["canary rollback"]
    np.testing.assert_allclose(rows, await FakeEmbedder(SENSES).embed_passages(texts), atol=0.01)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert (await known.embed_passages([])).shape == (0, known.dimensions)


async def test_vectors_of_another_model_are_not_taken(tmp_path: Path) -> None:
    model = FakeEmbedder(SENSES)
    known = KnownVectors(model, written(tmp_path, "another", "canary"))
    await known.embed_passages(["canary"])
    assert model.asked == ["canary"]
