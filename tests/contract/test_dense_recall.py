"""What search by meaning finds among many passages, beside a comparison with every vector."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapters import qdrant_edge
from adapters.qdrant_edge import EdgeIndex
from core.model.conversation import PUBLIC
from tests.contract.passages import encoded

PASSAGES, VECTORS, DIMENSIONS = 3_000, 5, 384  # more than the size from which the engine would build a graph
WANTED = 50
LEAST = 0.97
SECRET = frozenset({"channel:payments-private"})


async def test_nearest_passages_are_found_among_many_for_every_audience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    vectors = random.standard_normal((PASSAGES, VECTORS, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    readers = [frozenset({PUBLIC}) if number % 10 else SECRET for number in range(PASSAGES)]
    passages = [
        replace(encoded(f"docs/{number}.md", 1, {7: 1.0}, [], readers=who), dense=rows)
        for number, (rows, who) in enumerate(zip(vectors, readers, strict=True))
    ]
    monkeypatch.setattr(qdrant_edge, "OPTIMISE_AFTER", PASSAGES)
    index = EdgeIndex(tmp_path / "index")
    await index.clear(DIMENSIONS)
    for start in range(0, PASSAGES, 1_000):
        await index.upsert(passages[start : start + 1_000])
    ids = np.array([each.passage.id for each in passages])
    queries = random.standard_normal((10, DIMENSIONS)).astype(np.float32)
    for audience in (frozenset({PUBLIC}), SECRET, SECRET | {PUBLIC}):
        may_read = np.array([not who.isdisjoint(audience) for who in readers])
        recall = list[float]()
        for query in queries:
            scores = np.where(may_read, (vectors @ query).max(axis=1), -np.inf)
            nearest = set(ids[np.argsort(-scores)[:WANTED]])
            found = await index.search_dense(query, audience, WANTED)
            recall.append(len(nearest.intersection(hit.passage_id for hit in found)) / WANTED)
        assert np.mean(recall) >= LEAST, sorted(audience)
    await asyncio.gather(*(index.search_dense(query, SECRET, 1) for query in queries))  # from several threads at once
    await index.close()
