"""Sources that tell what changed → index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from core.knowledge.terms import Encoder
from core.model.document import Document, Passage
from core.model.errors import IndexUnavailable, SourceUnavailable
from core.ports import EncodedPassage, SourceChanges, SourceCursor
from handlers.knowledge import ingest_knowledge as module
from handlers.knowledge.ingest_knowledge import IngestReport, ingest_knowledge
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.store import InMemoryStore
from tests.unit.handlers.ingestion import FakeSource, encoder_of, encoders, index

__all__ = ["encoders", "index"]  # the fixtures


class FakeChangingSource:
    """A log of changes: one part for each entry, a text or None for a deletion; `fails_at` that entry it breaks."""

    name = "wiki"

    def __init__(self, *entries: tuple[str, str | None], fails_at: int | None = None) -> None:
        self.log = list(entries)
        self.fails_at = fails_at
        self.asked: list[str] = []

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        self.asked.append(cursor)
        for number in range(int(cursor or 0), len(self.log)):
            if number == self.fails_at:
                raise SourceUnavailable("wiki is down.")
            key, text = self.log[number]
            document = Document(f"wiki/{key}", "wiki", "family", key, text or "")
            removed = frozenset() if text is not None else frozenset({document.id})
            yield SourceChanges((document,) if text is not None else (), removed, str(number + 1))


PAGES = [(f"p{number}", f"Page {number} is about topic{number}.") for number in range(8)]


def kept(store: InMemoryStore) -> SourceCursor | None:
    return store.cursors.by_source.get("wiki")


async def test_a_changing_source_is_asked_only_for_what_changed_since(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    source = FakeChangingSource(*PAGES)
    assert (await ingest_knowledge([source], index, encoders, store=store)).added == 8
    source.log += [("p3", None), ("p5", "Page 5 is about fog now."), ("new", "A new page.")]
    report = await ingest_knowledge([source], index, encoders, store=store)
    assert source.asked == ["", "8"]
    assert report == IngestReport(added=1, changed=1, removed=1, unchanged=6)
    assert set(await index.content_hashes("wiki")) == {f"wiki/{key}" for key in "p0 p1 p2 p4 p5 p6 p7 new".split()}
    assert kept(store) == SourceCursor("11", 8)


async def test_what_came_and_went_and_came_back_between_two_runs_is_indexed_once_as_it_is_now(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    log = [("a", "One."), ("a", "Two."), ("b", "Gone."), ("b", None), ("c", "Old."), ("c", None), ("c", "Back.")]
    report = await ingest_knowledge([FakeChangingSource(*log)], index, encoders, store=store)
    assert report == IngestReport(added=2)
    assert sorted(point.passage.text for point in index.points.values()) == ["Back.", "Two."]
    assert encoder_of(encoders).statistics.passages == 2


async def test_without_a_store_a_changing_source_is_read_from_the_start(
    index: FakePassageIndex, encoders: FakeEncoderStore
) -> None:
    source = FakeChangingSource(*PAGES)
    await ingest_knowledge([source], index, encoders)
    assert await ingest_knowledge([source], index, encoders) == IngestReport(unchanged=8)
    assert source.asked == ["", ""]


async def test_a_changing_source_that_fails_midway_is_read_on_from_there(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    source = FakeChangingSource(*PAGES, ("p0", None), fails_at=5)
    report = await ingest_knowledge([source], index, encoders, store=store)
    assert (report.added, report.removed, report.failed) == (5, 0, {"wiki": "wiki is down."})
    assert kept(store) == SourceCursor("5", 5)
    source.fails_at = None
    report = await ingest_knowledge([source], index, encoders, store=store)
    assert (report.added, report.removed) == (3, 1)
    assert await index.count() == 7


async def test_a_process_that_is_killed_while_reading_has_kept_its_checkpoints_and_loses_nothing(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    class DyingSource(FakeChangingSource):
        async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
            async for part in super().changes(cursor, known_ids):
                yield part
                if part.cursor == "5":
                    raise Killed

    monkeypatch.setattr(module, "CHECKPOINT", 2)
    with pytest.raises(Killed):
        await ingest_knowledge([DyingSource(*PAGES)], index, encoders, store=store)
    assert kept(store) == SourceCursor("4", 4)
    assert await index.count() == 4
    source = FakeChangingSource(*PAGES)
    report = await ingest_knowledge([source], index, encoders, store=store)
    assert (source.asked, report.added, await index.count()) == (["4"], 4, 8)
    assert encoder_of(encoders).statistics.passages == 8


async def test_the_cursor_is_not_kept_when_its_documents_were_not_written(
    encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    class FullIndex(FakePassageIndex):
        full = True

        async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
            if self.full:
                raise IndexUnavailable("no room left")
            await super().upsert(passages)

    index, source = FullIndex(), FakeChangingSource(*PAGES)
    with pytest.raises(IndexUnavailable):
        await ingest_knowledge([source], index, encoders, store=store)
    assert kept(store) is None
    index.full = False
    await ingest_knowledge([source], index, encoders, store=store)
    assert await index.count() == 8


async def test_an_index_that_was_lost_is_filled_from_the_start(
    encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    source = FakeChangingSource(*PAGES)
    await ingest_knowledge([source], FakePassageIndex(), encoders, store=store)
    index = FakePassageIndex()
    assert (await ingest_knowledge([source], index, encoders, store=store)).added == 8
    assert source.asked == ["", ""]


async def test_checkpoints_do_not_learn_the_encoder_anew_but_the_end_does(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[int] = []

    fitted = Encoder.fitted

    def fit(passages: Sequence[Passage], embedder: str = "") -> Encoder:
        fits.append(len(passages))
        return fitted(passages, embedder)

    monkeypatch.setattr(Encoder, "fitted", fit)
    monkeypatch.setattr(module, "CHECKPOINT", 2)
    await ingest_knowledge([FakeChangingSource(*PAGES)], index, encoders, store=store)
    assert fits == [2, 8]
    assert not encoder_of(encoders).outdated


async def test_what_must_not_be_indexed_is_taken_out_of_every_document(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("hunter2", "[secret]"))

    sources = [FakeSource("docs", {"1": "Use hunter2."}), FakeChangingSource(("2", "Or hunter2."))]
    await ingest_knowledge(sources, index, encoders, store=store, redact=redact)
    assert sorted(point.passage.text for point in index.points.values()) == ["Or [secret].", "Use [secret]."]
    report = await ingest_knowledge(sources, index, encoders, store=store, redact=redact)
    assert report == IngestReport(unchanged=2)


async def test_a_source_whose_setting_changed_is_read_from_the_start(
    index: FakePassageIndex, encoders: FakeEncoderStore, store: InMemoryStore
) -> None:
    source = FakeChangingSource(*PAGES)
    for setting in ("all may read", "all may read", "few may read", "few may read"):
        await ingest_knowledge([source], index, encoders, store=store, setting=lambda _, said=setting: said)
    assert source.asked == ["", "8", "", "8"]
