"""Ingest knowledge sources into the index: encode changed documents, and delete removed ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby

import structlog

from core.answering.excerpts import chunk_texts
from core.knowledge.markdown import without_links
from core.knowledge.passages import divided, packed, passages_of, unpacked
from core.knowledge.terms import Encoder
from core.model.document import IN_PART, Document, Passage
from core.model.errors import IndexUnavailable, ModelUnavailable, SourceUnavailable, StoreUnavailable
from core.ports import (
    ChangingSource,
    Embedder,
    EncodedPassage,
    KnowledgeSource,
    LearnedStore,
    LeftOut,
    PassageIndex,
    SourceChanges,
    SourceCursor,
    Store,
)

BATCH = 200  # passages per write
# The documents and the cursor of a changing source are written after this many documents, or this much time.
CHECKPOINT = 500  # documents
CHECKPOINT_AFTER = 60.0  # seconds

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Progress of an ingestion: `done` of `total` passages are written.

    While sources are still being read, `total` is 0 and `source` is the one being read; while writing, `source` is
    empty. `is_embedding` is True while they, already found by their words, are embedded.
    """

    source: str
    done: int
    total: int
    is_embedding: bool = False


@dataclass(frozen=True, slots=True)
class IngestReport:
    """Numbers of documents ingested.

    `failed` maps each source that could not be read to its error; `left_out` maps each source to the documents that
    could not be indexed.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, list[LeftOut]] = field(default_factory=dict[str, list[LeftOut]])


def _ignore(_: IngestProgress) -> None:
    pass


async def ingest_knowledge(
    sources: Sequence[KnowledgeSource | ChangingSource],
    index: PassageIndex,
    encoders: LearnedStore[Encoder],
    embedder: Embedder | None = None,
    on_progress: Callable[[IngestProgress], None] = _ignore,
    *,
    store: Store | None = None,
    redact: Callable[[Document], Document] = lambda document: document,
    setting: Callable[[str], str] = lambda _: "",
) -> IngestReport:
    """Read every source, and write the changes to the index.

    If a source fails midway, with whatever error, the documents that it yielded are kept, no others are deleted, and
    the remaining sources are read. The next run completes a run that was killed.

    Few new passages are embedded; many are found by their words until `embed_passages` has read them.

    - `store` keeps the cursor of each changing source; without it, sources are read from the start.
    - `redact` removes from a document what must not be indexed.
    - `setting` returns, for a source's name, one line with every setting that affects how its documents are indexed,
      such as their readers. If it changed, the source is read from the start.

    Raises IndexUnavailable and StoreUnavailable.
    """
    run = _Run(index, _Writer(index, encoders, embedder, on_progress), store, redact, setting, on_progress)
    for source in sources:
        await run.read(source)
    await run.write(final=True)
    await run.name_missing()
    return run.report()


async def embed_passages(
    index: PassageIndex,
    encoders: LearnedStore[Encoder],
    embedder: Embedder,
    on_progress: Callable[[IngestProgress], None] = _ignore,
    *,
    lock: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
) -> None:
    """Embed the passages that have no vectors yet. If the model fails, the next run goes on.

    `lock` returns the lock of the index. It is held while vectors are written, not while the model reads, so that others
    may write meanwhile; a passage that they change or delete keeps what they wrote.

    Raises IndexUnavailable and StoreUnavailable.
    """
    await _Writer(index, encoders, embedder, on_progress).embed_waiting(lock)


@dataclass(slots=True)
class _Run:
    """Differences between the sources and the index, as far as the sources have been read.

    `before` and `hashes` hold the content hash of every document that was, and that is or will be indexed; `indexed` are the
    ids in the index now. `fresh` and `outdated` documents are to be written and deleted; `cursors` are saved after that.
    """

    index: PassageIndex
    writer: _Writer
    store: Store | None
    redact: Callable[[Document], Document]
    setting: Callable[[str], str]
    on_progress: Callable[[IngestProgress], None]
    before: dict[str, str] = field(default_factory=dict[str, str])
    hashes: dict[str, str] = field(default_factory=dict[str, str])
    indexed: set[str] = field(default_factory=set[str])
    fresh: dict[str, Document] = field(default_factory=dict[str, Document])
    outdated: set[str] = field(default_factory=set[str])
    cursors: dict[str, SourceCursor] = field(default_factory=dict[str, SourceCursor])
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])
    left_out: dict[str, list[LeftOut]] = field(default_factory=dict[str, list[LeftOut]])
    written_at: float = field(default_factory=time.monotonic)

    async def read(self, source: KnowledgeSource | ChangingSource) -> None:
        stored = await self.index.content_hashes(source.name)
        self.before |= stored
        self.hashes |= stored
        self.indexed |= stored.keys()
        held, read = set(stored), set[str]()
        async for part in self._readable(source, frozenset(stored)):
            self._leave_out(source.name, part.left_out)
            for document in part.documents:
                read.add(document.id)
                self.on_progress(IngestProgress(source.name, len(read), 0))
                self._put(document, held)
            for document_id in part.removed_ids:
                self._remove(document_id)
                held.discard(document_id)
            if isinstance(source, ChangingSource):
                setting = self.setting(source.name)  # which the position was reached with
                position = f"{setting}\n{part.cursor}" if setting else part.cursor
                self.cursors[source.name] = SourceCursor(position, len(held))
                if len(self.fresh) >= CHECKPOINT or time.monotonic() - self.written_at >= CHECKPOINT_AFTER:
                    await self.write(final=False)
                    log.info("source_progress", source=source.name, read=len(read), documents=len(held))
        if isinstance(source, ChangingSource) and source.name not in self.failed:
            self.unchanged += len(held - read)

    async def _readable(
        self, source: KnowledgeSource | ChangingSource, known_ids: frozenset[str]
    ) -> AsyncIterator[SourceChanges]:
        """Yield the redacted parts of a source until it ends or fails."""
        try:
            async for part in await self._parts(source, known_ids):
                documents = [await asyncio.to_thread(self.redact, document) for document in part.documents]
                yield replace(part, documents=tuple(documents))
        except SourceUnavailable as error:
            log.warning("source_unavailable", source=source.name, error=str(error))
            self.failed[source.name] = str(error)
        except (IndexUnavailable, StoreUnavailable):
            raise
        except Exception as error:
            log.exception("source_failed", source=source.name)
            self.failed[source.name] = f"It stopped at an unexpected error ({type(error).__name__}); see the log."

    def _leave_out(self, source: str, left_out: Sequence[LeftOut]) -> None:
        # Names of files and pages may contain anything, and are shown in terminals.
        left_out = [each if each.path.isprintable() else replace(each, path=ascii(each.path)) for each in left_out]
        for each in left_out:
            event = "document_property_ignored" if each.is_indexed else "document_left_out"
            log.warning(event, source=source, path=each.path, error=each.reason)
        if left_out:
            self.left_out.setdefault(source, []).extend(left_out)

    async def name_missing(self) -> None:
        """Name the missing parts of all documents that are indexed, whether or not they were read in this run."""
        in_part = [document_id for document_id, digest in self.hashes.items() if digest.endswith(IN_PART)]
        async for passage in self.index.scan(in_part):
            if passage.number == 1:
                source, _, path = passage.document_id.partition("/")
                named = "; ".join(map(without_links, passage.missing))
                self._leave_out(source, [LeftOut(path, f"Parts are not included: {named}.", is_indexed=True)])

    async def write(self, *, final: bool) -> None:
        """Write what was read so far, then save the cursors. A run that is killed in between repeats the part."""
        documents = list(self.fresh.values())
        fresh = await asyncio.to_thread(lambda: [passage for each in documents for passage in passages_of(each)])
        await self.writer.bring_up_to_date(sorted(self.outdated & self.indexed), fresh, final=final)
        self.indexed -= self.outdated
        self.indexed |= (written := {passage.document_id for passage in fresh})
        for document_id in self.fresh.keys() - written:  # without a word to index, which the next run sees anew
            del self.hashes[document_id]
        self.fresh.clear()
        self.outdated.clear()
        if self.store is not None and self.cursors:
            async with self.store.transaction() as transaction:
                for source, cursor in self.cursors.items():
                    await transaction.cursors.save(source, cursor)
            self.cursors.clear()
        self.written_at = time.monotonic()

    def report(self) -> IngestReport:
        added, removed = self.hashes.keys() - self.before.keys(), self.before.keys() - self.hashes.keys()
        changed = [each for each in self.hashes.keys() - added if self.hashes[each] != self.before[each]]
        return IngestReport(len(added), len(changed), len(removed), self.unchanged, self.failed, self.left_out)

    async def _parts(
        self, source: KnowledgeSource | ChangingSource, known_ids: frozenset[str]
    ) -> AsyncIterator[SourceChanges]:
        if not isinstance(source, ChangingSource):
            return _whole(source, known_ids)
        kept = None
        if self.store is not None:
            async with self.store.transaction() as transaction:
                kept = await transaction.cursors.load(source.name)
        # A lost or restored index holds fewer documents than the cursor says.
        if kept is None or len(known_ids) < kept.documents:
            return source.changes("", known_ids)
        return source.changes(_position(self.setting(source.name), kept.position), known_ids)

    def _put(self, document: Document, held: set[str]) -> None:
        if self.hashes.get(document.id) == document.content_hash:
            self.unchanged += 1
            return
        self.hashes[document.id] = document.content_hash
        self.fresh[document.id] = document
        self.outdated.add(document.id)
        (held.add if document.text.strip() else held.discard)(document.id)

    def _remove(self, document_id: str) -> None:
        self.hashes.pop(document_id, None)
        self.fresh.pop(document_id, None)
        self.outdated.add(document_id)


def _position(setting: str, kept: str) -> str:
    """Return the stored position; empty (the start) if it was reached with another setting."""
    if not setting:
        return kept
    before, _, position = kept.partition("\n")
    return position if before == setting else ""


async def _whole(source: KnowledgeSource, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
    """Yield everything that a source holds. Known documents that it no longer holds are removed at the end."""
    seen = set[str]()
    async for item in source.documents():
        if isinstance(item, LeftOut):
            yield SourceChanges((), frozenset(), "", (item,))
            continue
        seen.add(item.id)
        yield SourceChanges((item,), frozenset(), "")
    yield SourceChanges((), known_ids - seen, "")


def vectors_of(passages: Sequence[Passage]) -> dict[str, bytes]:
    """Return the vectors of the passages' chunks by their texts."""
    by_text: dict[str, bytes] = {}
    for passage in passages:
        if passage.meaning:
            texts = chunk_texts(passage)
            by_text |= zip(texts, divided(passage.meaning, len(texts)), strict=True)
    return by_text


def with_vectors(passage: Passage, by_text: Mapping[str, bytes]) -> Passage:
    """Return the passage with the vectors of its chunks, if all of them are known."""
    vectors = [by_text.get(text, b"") for text in chunk_texts(passage)] if by_text else []
    return replace(passage, meaning=b"".join(vectors)) if all(vectors) else passage


@dataclass(frozen=True, slots=True)
class _Writer:
    """Keeps the index and the encoder consistent, even if the process is killed."""

    index: PassageIndex
    encoders: LearnedStore[Encoder]
    embedder: Embedder | None
    on_progress: Callable[[IngestProgress], None]

    async def bring_up_to_date(self, outdated_ids: Sequence[str], fresh: Sequence[Passage], *, final: bool) -> None:
        """Write the differences. With `final`, an encoder that has become outdated is fitted again.

        Few passages are embedded before they are written, many are not embedded.
        """
        removed = [passage async for passage in self.index.scan(outdated_ids)] if outdated_ids else []
        expected = await self.index.count() - len(removed) + len(fresh)
        before = await self.encoders.load_newest()
        by_text = vectors_of(removed) if before is not None and before.embedder == self._embedder_name else {}
        fresh = [with_vectors(passage, by_text) for passage in fresh]
        waiting = [passage for passage in fresh if not passage.meaning] if self.embedder else []
        if len(waiting) <= BATCH and (embedded := await self._embedded(waiting, by_text)):
            filled = {passage.id: passage for passage in embedded}
            fresh, waiting = [filled.get(passage.id, passage) for passage in fresh], []
        after = before and await asyncio.to_thread(before.updated, fresh, removed)
        if before is None or after is None or not self._fits(after, expected) or (final and after.outdated):
            await self._refit(before, outdated_ids, fresh)
        elif fresh or outdated_ids:
            encoder = replace(after, embedded=after.embedded and not waiting)
            if encoder.embedded != before.embedded:
                await self.encoders.save(replace(before, embedded=False))
            await self.index.delete_documents(outdated_ids)
            await self._write(encoder, fresh)
            await self.encoders.save(encoder)

    async def embed_waiting(self, lock: Callable[[], AbstractAsyncContextManager[object]]) -> None:
        """Embed the passages that have no vectors, until there are none, or only such as were tried in vain."""
        tried = set[tuple[str, str]]()
        while True:
            async with lock():
                encoder = await self.encoders.load_newest()
                if (
                    encoder is None
                    or encoder.embedded
                    or not encoder.settled
                    or encoder.embedder != self._embedder_name
                ):
                    return
                lacking = [passage async for passage in self.index.scan() if not passage.meaning]
                waiting = [passage for passage in lacking if (passage.id, passage.content_hash) not in tried]
                if not waiting:
                    await self.encoders.save(replace(encoder, embedded=True))
                    return
            done = 0
            for batch in _batches(waiting):
                if not (embedded := await self._embedded(batch, {})):
                    return
                async with lock():
                    await self._add_vectors(batch, embedded)
                done += len(batch)
                tried |= {(passage.id, passage.content_hash) for passage in batch}
                self.on_progress(IngestProgress("", done, len(waiting), is_embedding=True))

    async def _add_vectors(self, before: Sequence[Passage], embedded: Sequence[Passage]) -> None:
        """Write the passages with their vectors, but for those that have been changed or deleted."""
        encoder = await self.encoders.load_newest()
        ids = sorted({passage.document_id for passage in before})
        current = {passage.id: passage async for passage in self.index.scan(ids)}
        unchanged = [after for each, after in zip(before, embedded, strict=True) if current.get(each.id) == each]
        if encoder is not None and encoder.embedder == self._embedder_name:
            await self.index.upsert(await asyncio.to_thread(self._encoded, encoder, unchanged))

    def _fits(self, encoder: Encoder, passages: int) -> bool:
        """Return whether the encoder describes the index. A killed run or another embedding model breaks this."""
        return encoder.settled and encoder.statistics.passages == passages and encoder.embedder == self._embedder_name

    async def _refit(self, before: Encoder | None, outdated_ids: Sequence[str], fresh: Sequence[Passage]) -> None:
        outdated = set(outdated_ids)
        kept = [passage async for passage in self.index.scan() if passage.document_id not in outdated]
        if before is None or before.embedder != self._embedder_name:
            kept = [replace(passage, meaning=b"") for passage in kept]
        passages = [*kept, *fresh]
        encoder = await asyncio.to_thread(Encoder.fitted, passages, self._embedder_name)
        encoder = replace(encoder, embedded=all(passage.meaning for passage in passages))
        # An empty index may have been lost, and may not exist at all.
        if not kept or before is None or before.embedder != self._embedder_name:
            await self.index.clear(self.embedder.dimensions if self.embedder else 0)
        else:
            await self.index.delete_documents(outdated_ids)
        # Marked as unsettled until every vector is written, so that a killed run is repeated.
        await self.encoders.save(replace(encoder, settled=False))
        await self._write(encoder, passages)
        await self.encoders.save(encoder)

    async def _write(self, encoder: Encoder, passages: Sequence[Passage]) -> None:
        done = 0
        for batch in _batches(passages):
            await self.index.upsert(await asyncio.to_thread(self._encoded, encoder, batch))
            done += len(batch)
            self.on_progress(IngestProgress("", done, len(passages)))

    def _encoded(self, encoder: Encoder, passages: Sequence[Passage]) -> list[EncodedPassage]:
        encoded = map(encoder.encode_passage, passages)
        if self.embedder is None:
            return list(encoded)
        dimensions = self.embedder.dimensions
        return [
            replace(each, dense=unpacked(each.passage, dimensions)) if each.passage.meaning else each
            for each in encoded
        ]

    async def _embedded(self, passages: Sequence[Passage], by_text: Mapping[str, bytes]) -> list[Passage]:
        """Return the passages with their vectors, of which some are known; none of the passages if the model fails."""
        if self.embedder is None:
            return []
        texts = await asyncio.to_thread(
            lambda: {text for each in passages for text in chunk_texts(each)} - by_text.keys()
        )
        try:
            rows = await self.embedder.embed_passages(sorted(texts, key=len))
        except ModelUnavailable as error:
            log.warning("passages_not_embedded", error=str(error), action="They are found by their words until then.")
            return []
        made = dict(zip(sorted(texts, key=len), map(packed, rows), strict=True))
        return [with_vectors(passage, {**by_text, **made}) for passage in passages]

    @property
    def _embedder_name(self) -> str:
        return self.embedder.name if self.embedder else ""


def _batches(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    """Yield batches of whole documents. A document is written completely or not at all."""
    batch: list[Passage] = []
    for _, document in groupby(passages, key=lambda passage: passage.document_id):
        batch += document
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
