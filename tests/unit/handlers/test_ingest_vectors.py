"""Vectors of passages: made once for each chunk, and never waited for by a page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from handlers.knowledge import ingest_knowledge as module
from handlers.knowledge.ingest_knowledge import embed_passages, ingest_knowledge
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.unit.handlers.ingestion import FakeSource, encoder_of, encoders, index

__all__ = ["encoders", "index"]  # the fixtures

TEXTS = {f"page-{n}": f"# Buoy {n}\n\nBuoy {n} is green.\n\n## Repair\n\nCall pier {n}." for n in range(20)}
CHUNKS = 2 * len(TEXTS)


class Model(FakeEmbedder):
    """Notes what is in the index and in use whenever it is asked, and fails from the call `fails_at` on."""

    def __init__(self, index: FakePassageIndex, encoders: FakeEncoderStore, fails_at: int = 1_000) -> None:
        super().__init__({"green": 0, "pier": 1})
        self.seen: list[tuple[int, bool]] = []
        self._index, self._encoders, self._fails_at = index, encoders, fails_at

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        encoder = await self._encoders.load()
        self.seen.append((len(self._index.points), encoder is not None and encoder.embedded))
        self.failing = len(self.seen) > self._fails_at
        return await super().embed_passages(texts)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 8)


def lacking(index: FakePassageIndex) -> int:
    return sum(not point.passage.meaning or not point.dense.size for point in index.points.values())


async def test_many_passages_are_found_by_their_words_before_they_are_embedded(
    index: FakePassageIndex, encoders: FakeEncoderStore, small_batches: None
) -> None:
    model = Model(index, encoders)
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, model)
    assert (model.seen, len(index.points)) == ([], 20)
    await embed_passages(index, encoders, model)
    assert model.seen == [(20, False)] * 3
    assert sorted(model.asked) == sorted(set(model.asked))
    assert len(model.asked) == CHUNKS
    assert lacking(index) == 0
    assert encoder_of(encoders).embedded


async def test_what_is_written_while_the_model_reads_is_kept_and_read_next(
    index: FakePassageIndex, encoders: FakeEncoderStore, small_batches: None
) -> None:
    lock = asyncio.Lock()

    unreachable = Model(index, encoders, fails_at=0)

    class Writing(Model):
        """Writes changed, deleted and new pages to the index while it reads for the first time."""

        async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
            vectors = await super().embed_passages(texts)
            if len(self.seen) == 1:
                changed = {name: f"{text} Now it is red." for name, text in TEXTS.items() if name != "page-0"}
                async with asyncio.timeout(5), lock:
                    await ingest_knowledge([FakeSource("docs", changed)], index, encoders, unreachable)
            return vectors

    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, unreachable)
    await embed_passages(index, encoders, Writing(index, encoders), lock=lambda: lock)
    texts = [point.passage.text for point in index.points.values()]
    assert (len(texts), sum("Now it is red." in text for text in texts)) == (19, 19)
    assert (lacking(index), encoder_of(encoders).embedded) == (0, True)


async def test_few_passages_are_embedded_before_they_are_written_so_that_search_by_meaning_goes_on(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    model = Model(index, encoders)
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, model)
    await ingest_knowledge([FakeSource("docs", TEXTS | {"new": "A new pier."})], index, encoders, model)
    assert model.seen == [(0, False), (20, True)]
    assert all(encoder.embedded for encoder in encoders.saved)
    assert lacking(index) == 0


async def test_of_a_changed_page_only_the_chunks_that_changed_are_embedded(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    model = Model(index, encoders)
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, model)
    model.asked.clear()
    changed = TEXTS | {"page-3": TEXTS["page-3"].replace("Call pier 3", "Call pier 30")}
    await ingest_knowledge([FakeSource("docs", changed)], index, encoders, model)
    [asked] = model.asked
    assert "Call pier 30." in asked
    assert lacking(index) == 0


async def test_a_run_whose_model_fails_is_completed_by_the_next(
    index: FakePassageIndex, encoders: FakeEncoderStore, small_batches: None
) -> None:
    failing = Model(index, encoders, fails_at=1)
    report = await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, failing)
    await embed_passages(index, encoders, failing)
    assert (report.added, report.failed) == (20, {})
    assert (lacking(index), encoder_of(encoders).embedded) == (12, False)
    model = Model(index, encoders)
    await embed_passages(index, encoders, model)
    assert len(model.asked) == 2 * 12
    assert (lacking(index), encoder_of(encoders).embedded) == (0, True)


async def test_a_few_passages_whose_model_fails_are_written_nevertheless(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, Model(index, encoders))
    more = TEXTS | {"new": "A new pier."}
    report = await ingest_knowledge([FakeSource("docs", more)], index, encoders, Model(index, encoders, fails_at=0))
    assert report.added == 1
    assert (len(index.points), lacking(index), encoder_of(encoders).embedded) == (21, 1, False)
