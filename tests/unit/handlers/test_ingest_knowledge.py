"""Sources → index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import IndexUnavailable
from core.ports import EncodedPassage, LeftOut
from handlers.knowledge.ingest_knowledge import IngestProgress, IngestReport, embed_passages, ingest_knowledge
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.unit.handlers.ingestion import FakeEmbedder, FakeSource, encoder_of, encoders, index

__all__ = ["encoders", "index"]  # the fixtures

PUBLIC_ONLY = frozenset({PUBLIC})
TEXTS = {f"page-{n}": f"Page number {n} is about topic{n} and the canary." for n in range(20)}


async def test_a_first_run_writes_everything(index: FakePassageIndex, encoders: FakeEncoderStore) -> None:
    report = await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders)
    assert report == IngestReport(added=20)
    assert await index.count() == 20
    assert encoder_of(encoders).settled
    assert encoder_of(encoders).statistics.passages == 20


async def test_a_second_run_writes_nothing(index: FakePassageIndex, encoders: FakeEncoderStore) -> None:
    source = FakeSource("docs", TEXTS)
    await ingest_knowledge([source], index, encoders)
    before = dict(index.points)
    assert await ingest_knowledge([source], index, encoders) == IngestReport(unchanged=20)
    assert index.points == before
    assert len(encoders.saved) == 2  # one unsettled, one settled, both of the first run


async def test_a_document_without_a_word_is_not_counted_as_added_at_every_run(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    source = FakeSource("docs", {"page": "Text.", "empty": "", "blank": " \n\n", "rule": "---\n\n---"})
    first = await ingest_knowledge([source], index, encoders)
    documents = {encoded.passage.document_id for encoded in index.points.values()}
    assert first.added == len(documents) < len(source.texts)
    assert (await ingest_knowledge([source], index, encoders)).added == 0


async def test_only_what_changed_is_written_anew_and_what_is_gone_is_removed(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders)
    before = dict(index.points)
    changed = {key: text for key, text in TEXTS.items() if key != "page-3"} | {
        "page-5": "Now about fog.",
        "new": "New.",
    }
    report = await ingest_knowledge([FakeSource("docs", changed)], index, encoders)
    assert report == IngestReport(added=1, changed=1, removed=1, unchanged=18)
    assert await index.passages_of("docs/page-3", PUBLIC_ONLY) == []
    assert [p.text for p in await index.passages_of("docs/page-5", PUBLIC_ONLY)] == ["Now about fog."]
    assert sum(index.points.get(key) is point for key, point in before.items()) == 18
    assert encoder_of(encoders).statistics.passages == 20


async def test_a_large_change_learns_the_encoder_anew_without_emptying_the_index(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders)
    first = encoder_of(encoders)
    more = TEXTS | {f"more-{n}": f"More about fog{n}." for n in range(10)}
    await ingest_knowledge([FakeSource("docs", more)], index, encoders)
    assert encoder_of(encoders).average_length != first.average_length
    assert encoder_of(encoders).changed_since_fit == 0
    assert len(index.cleared) == 1


async def test_a_source_that_fails_midway_deletes_nothing(index: FakePassageIndex, encoders: FakeEncoderStore) -> None:
    await ingest_knowledge([FakeSource("docs", TEXTS), FakeSource("chat", {"1": "Hello there."})], index, encoders)
    broken = FakeSource("docs", {"new": "New page."} | TEXTS, fails_after=3)
    report = await ingest_knowledge([broken, FakeSource("chat", {})], index, encoders)
    assert report == IngestReport(added=1, removed=1, unchanged=2, failed={"docs": "docs is down."})
    assert await index.count() == 21


async def test_a_source_that_raises_whatever_it_likes_does_not_end_the_others(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    class Odd(FakeSource):
        async def documents(self) -> AsyncIterator[Document | LeftOut]:
            yield LeftOut("a\x1b[2J.pdf", "It is odd.")
            raise AssertionError("No library documents this one.")

    report = await ingest_knowledge([Odd("docs", {}), FakeSource("chat", {"1": "Hello there."})], index, encoders)
    assert (report.added, list(report.failed)) == (1, ["docs"])
    assert report.left_out == {"docs": [LeftOut(r"'a\x1b[2J.pdf'", "It is odd.")]}


async def test_a_run_that_was_killed_while_writing_is_completed_by_the_next(encoders: FakeEncoderStore) -> None:
    class DyingIndex(FakePassageIndex):
        """Loses its process in the middle of the second batch of the first run."""

        writes = 0

        async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
            self.writes += 1
            if self.writes == 2:
                raise IndexUnavailable("killed")
            await super().upsert(passages)

    index, source = DyingIndex(), FakeSource("docs", {f"p{n}": f"Page {n} about topic{n}." for n in range(450)})
    with pytest.raises(IndexUnavailable):
        await ingest_knowledge([source], index, encoders)
    assert not encoder_of(encoders).settled
    report = await ingest_knowledge([source], index, encoders)
    assert (report.added, report.unchanged) == (250, 200)
    assert await index.count() == 450
    assert encoder_of(encoders).settled
    assert encoder_of(encoders).statistics.passages == 450


async def test_an_encoder_that_was_lost_is_learned_anew(index: FakePassageIndex, encoders: FakeEncoderStore) -> None:
    source = FakeSource("docs", TEXTS)
    await ingest_knowledge([source], index, encoders)
    encoders.saved.clear()
    assert await ingest_knowledge([source], index, encoders) == IngestReport(unchanged=20)
    assert encoder_of(encoders).statistics.passages == 20
    assert await index.count() == 20


async def test_an_index_that_was_lost_is_made_anew(index: FakePassageIndex, encoders: FakeEncoderStore) -> None:
    source = FakeSource("docs", TEXTS)
    await ingest_knowledge([source], index, encoders)
    lost = FakePassageIndex()
    assert await ingest_knowledge([source], lost, encoders) == IngestReport(added=20)
    assert len(lost.cleared) == 1  # no server takes passages before it
    assert encoder_of(encoders).statistics.passages == await lost.count() == 20


async def test_another_embedding_model_rewrites_every_vector(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    source = FakeSource("docs", TEXTS)
    await ingest_knowledge([source], index, encoders)
    await ingest_knowledge([source], index, encoders, FakeEmbedder())
    await embed_passages(index, encoders, FakeEmbedder())
    assert index.cleared[-1] == 3
    assert {point.dense.shape for point in index.points.values()} == {(1, 3)}
    assert encoder_of(encoders).embedder == "tiny"


async def test_a_document_without_text_is_no_reason_to_write(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    await ingest_knowledge([FakeSource("docs", TEXTS | {"empty": " "})], index, encoders)
    saved = len(encoders.saved)
    await ingest_knowledge([FakeSource("docs", TEXTS | {"empty": " "})], index, encoders)
    assert len(encoders.saved) == saved


async def test_no_source_and_no_document_is_fine(index: FakePassageIndex, encoders: FakeEncoderStore) -> None:
    assert await ingest_knowledge([], index, encoders) == IngestReport()
    assert await index.count() == 0


async def test_progress_tells_what_is_read_and_how_much_is_written(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    seen: list[IngestProgress] = []
    await ingest_knowledge([FakeSource("docs", TEXTS)], index, encoders, on_progress=seen.append)
    assert seen[0] == IngestProgress("docs", 1, 0)
    assert seen[-1] == IngestProgress("", 20, 20)
