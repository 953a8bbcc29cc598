"""Corpus files that are ingested as in the product, for questions about them."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from adapters.array_formats import ENCODER, ArrayFile
from adapters.qdrant_edge import EdgeIndex
from adapters.sources.formats import parse, title_from
from bot.evaluation.report import json_lines
from core.knowledge.retriever import Retriever
from core.model.conversation import Audience, Person, Place, Platform, Question, Turn
from core.model.document import Document
from core.model.errors import MalformedInput
from core.ports import Embedder
from handlers.knowledge.ingest_knowledge import embed_passages, ingest_knowledge


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A JSON lines file of documents as a knowledge source."""

    name: str
    path: Path

    async def documents(self) -> AsyncIterator[Document]:
        for row in json_lines(self.path, "path", "text"):
            yield _document(self.name, row["path"], row["text"])


def _document(source: str, path: str, text: str) -> Document:
    try:
        ((part,), _) = parse(".md", text.encode("utf-8", "replace"))
        title, body = part.title, part.text
    except MalformedInput:
        title, body = "", text
    place = PurePosixPath(path)
    family = place.parts[0] if len(place.parts) > 1 else source
    return Document(f"{source}/{path}", source, family, title or title_from(place), body)


ADDRESS_BITS = 24  # of a document's number; more documents than any evaluation has

_ASKER, _PLACE = Person(Platform.TERMINAL, ""), Place(Platform.TERMINAL, "")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class CorpusLibrary:
    """The documents of some files, with readers that allow any single document to be excluded.

    The readers of a document encode the bits of its number. An audience with the complement of one number can read
    every document that differs in at least one bit: all but that document.
    """

    files: Sequence[CorpusFile]
    texts: dict[str, str] = field(default_factory=dict[str, str])  # document id → text
    name: str = "corpus"

    async def documents(self) -> AsyncIterator[Document]:
        for file in self.files:
            async for document in file.documents():
                self.texts[document.id] = document.text
                yield replace(document, readers=frozenset(_address(len(self.texts))))

    def audience(self, without: str = "") -> Audience:
        """Return an audience that can read everything, or everything except the document at this path."""
        if not without:
            return Audience(frozenset({"bit:0:0", "bit:0:1"}))
        number = next(n for n, document in enumerate(self.texts, start=1) if document.partition("/")[2] == without)
        return Audience(frozenset(_address(~number)))


@asynccontextmanager
async def library_of(
    corpora: Sequence[Path], embedder: Embedder | None = None
) -> AsyncGenerator[tuple[CorpusLibrary, Retriever]]:
    with tempfile.TemporaryDirectory(prefix="plumbline-eval-") as folder:
        index, encoders = EdgeIndex(Path(folder) / "index"), ArrayFile(Path(folder) / "encoder.npz", ENCODER)
        library = CorpusLibrary([CorpusFile(str(number), path) for number, path in enumerate(corpora, start=1)])
        await ingest_knowledge([library], index, encoders, embedder)
        if embedder is not None:
            await embed_passages(index, encoders, embedder)
        yield library, Retriever(index, encoders, embedder)
        await index.close()


def asked_of(text: str, audience: Audience, history: Sequence[Turn] = ()) -> Question:
    """Return a question from this audience, with the earlier conversation."""
    return Question("", text, _ASKER, _PLACE, audience, _NOW, tuple(history))


def _address(number: int) -> Iterator[str]:
    return (f"bit:{place}:{number >> place & 1}" for place in range(ADDRESS_BITS))
