"""Bring the index up to date with its sources: only what changed is encoded anew, what is gone is removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import structlog

from core.errors import SourceUnavailable
from core.knowledge.document import Document, Passage
from core.knowledge.encoder import Encoder
from core.knowledge.latent import DIMENSIONS
from core.knowledge.passages import passages_of
from core.ports import Embedder, EncodedPassage, EncoderStore, KnowledgeSource, PassageIndex

BATCH = 200  # passages encoded and written at once

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """`done` of `total` passages are written; `total` is 0 while the sources are still being read.

    `source` is the one being read, empty while writing.
    """

    source: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Numbers of documents. `failed` maps the name of each source that could not be read to its error."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Plan:
    """What differs between the sources and the index."""

    added: list[Document] = field(default_factory=list)
    changed: list[Document] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def outdated_ids(self) -> list[str]:
        return [*(document.id for document in self.changed), *self.removed]

    def report(self) -> IngestReport:
        return IngestReport(len(self.added), len(self.changed), len(self.removed), self.unchanged, self.failed)


def _ignore(_: IngestProgress) -> None:
    pass


async def ingest_knowledge(
    sources: Sequence[KnowledgeSource],
    index: PassageIndex,
    encoders: EncoderStore,
    embedder: Embedder | None = None,
    on_progress: Callable[[IngestProgress], None] = _ignore,
) -> IngestReport:
    """Read every source and write what changed.

    A source that fails midway contributes what it yielded and deletes nothing. A run that was killed is completed by
    the next one. Raises IndexUnavailable.
    """
    plan = await _compare(sources, index, on_progress)
    fresh = await asyncio.to_thread(_split, [*plan.added, *plan.changed])
    writer = _Writer(index, encoders, embedder, on_progress)
    await writer.bring_up_to_date(plan.outdated_ids, fresh)
    return plan.report()


async def _compare(
    sources: Sequence[KnowledgeSource], index: PassageIndex, on_progress: Callable[[IngestProgress], None]
) -> _Plan:
    plan = _Plan()
    for source in sources:
        stored = await index.content_hashes(source.name)
        seen = set[str]()
        try:
            async for document in source.documents():
                seen.add(document.id)
                on_progress(IngestProgress(source.name, len(seen), 0))
                if document.id not in stored:
                    plan.added.append(document)
                elif stored[document.id] != document.content_hash:
                    plan.changed.append(document)
                else:
                    plan.unchanged += 1
        except SourceUnavailable as error:
            log.warning("source_unavailable", source=source.name, error=str(error))
            plan.failed[source.name] = str(error)
        else:
            plan.removed += sorted(stored.keys() - seen)
    return plan


def _split(documents: Sequence[Document]) -> list[Passage]:
    return [passage for document in documents for passage in passages_of(document)]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Keeps the index and the encoder in step, whenever the process is killed."""

    index: PassageIndex
    encoders: EncoderStore
    embedder: Embedder | None
    on_progress: Callable[[IngestProgress], None]

    async def bring_up_to_date(self, outdated_ids: Sequence[str], fresh: Sequence[Passage]) -> None:
        removed = [passage async for passage in self.index.scan(outdated_ids)] if outdated_ids else []
        expected = await self.index.count() - len(removed) + len(fresh)
        before = await self.encoders.load()
        after = before and await asyncio.to_thread(before.updated, fresh, removed)
        if before is None or after is None or not self._fits(after, expected):
            await self._learn_anew(before, outdated_ids, fresh)
        elif fresh or outdated_ids:
            await self.index.delete_documents(outdated_ids)
            await self._write(after, fresh)
            await self.encoders.save(after)

    def _fits(self, encoder: Encoder, passages: int) -> bool:
        """Whether the encoder describes the index: a killed run or another embedding model leaves them apart."""
        return (
            encoder.settled
            and not encoder.outdated
            and encoder.statistics.passages == passages
            and encoder.embedder == self._embedder_name
        )

    async def _learn_anew(self, before: Encoder | None, outdated_ids: Sequence[str], fresh: Sequence[Passage]) -> None:
        outdated = set(outdated_ids)
        kept = [passage async for passage in self.index.scan() if passage.document_id not in outdated]
        passages = [*kept, *fresh]
        encoder = await asyncio.to_thread(Encoder.fitted, passages, self._embedder_name)
        if before is None or before.embedder != self._embedder_name:
            await self.index.clear(self.embedder.dimensions if self.embedder else DIMENSIONS)
        else:
            await self.index.delete_documents(outdated_ids)
        # Until every vector is written anew, the encoder says so: a run that is killed here is then repeated.
        await self.encoders.save(replace(encoder, settled=False))
        await self._write(encoder, passages)
        await self.encoders.save(encoder)

    async def _write(self, encoder: Encoder, passages: Sequence[Passage]) -> None:
        done = 0
        for batch in _batches(passages):
            encoded = await asyncio.to_thread(lambda chosen=batch: [encoder.encode_passage(p) for p in chosen])
            await self.index.upsert(await self._embedded(encoded))
            done += len(batch)
            self.on_progress(IngestProgress("", done, len(passages)))

    async def _embedded(self, encoded: list[EncodedPassage]) -> list[EncodedPassage]:
        if self.embedder is None:
            return encoded
        vectors = await self.embedder.embed_passages([item.passage.indexed_text for item in encoded])
        return [replace(item, dense=vector) for item, vector in zip(encoded, vectors, strict=True)]

    @property
    def _embedder_name(self) -> str:
        return self.embedder.name if self.embedder else ""


def _batches(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    """Runs of whole documents: a document is written at once or not at all."""
    batch: list[Passage] = []
    for _, document in groupby(passages, key=lambda passage: passage.document_id):
        batch += document
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
