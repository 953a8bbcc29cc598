"""Ports of knowledge: its sources, and the index in which it is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.model.document import Document, Passage


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A document that a source holds and that cannot be indexed. `path` names it within the source."""

    path: str
    reason: str


class KnowledgeSource(Protocol):
    """One place that documents come from."""

    @property
    def name(self) -> str:
        """Unique among the sources; the first part of its documents' ids."""
        ...

    def documents(self) -> AsyncIterator[Document | LeftOut]:
        """Yield every document that the source holds now, each id once, in any order, and those that it leaves out.

        Raises SourceUnavailable when the source cannot be read to its end: then nothing is deleted.
        """
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """A part of what changed at a source. Once it is indexed, `cursor` is where reading goes on, in whatever process.

    `documents` are new or changed, perhaps only possibly; `removed_ids` are those that the source no longer holds.
    `left_out` are documents that cannot be indexed as they are now; a source names them at every reading.
    """

    documents: tuple[Document, ...]
    removed_ids: frozenset[str]
    cursor: str
    left_out: tuple[LeftOut, ...] = ()


@runtime_checkable
class ChangingSource(Protocol):
    """A place that documents come from which can tell what changed since it was last read."""

    @property
    def name(self) -> str:
        """Unique among the sources; the first part of its documents' ids."""
        ...

    def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[Changes]:
        """Yield the changes since `cursor`, in parts to be applied in order; all documents if it is empty
        or not understood.

        `known_ids` are the ids of the source's documents that are indexed. After the last part the index holds exactly
        what the source holds. A part is indexed before its cursor is kept, so that a killed process loses none.
        Raises SourceUnavailable when the source cannot be read further: the parts before that stand.
        """
        ...


@runtime_checkable
class CheckedSource(Protocol):
    """A place that documents come from, behind a door: whether it opens can be told without reading everything."""

    async def check(self) -> None:
        """Raises SourceUnavailable when the token, its rights or the way there is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class SourceCursor:
    """How far a source has been read. `documents` is the number of its documents that the index then held.

    An index that holds fewer is not the one that the cursor was kept for: the source is then read from the start.
    """

    position: str
    documents: int


class SecretDetector(Protocol):
    """Finds passwords, keys and tokens."""

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the start and the end of each secret in `text`, in order, none overlapping."""
        ...


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights: `indices` are distinct and ascending unsigned 32-bit numbers, `values` as many weights above 0."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage as it is stored: its text, its term weights, and its embedding of unit length, empty if it has none."""

    passage: Passage
    lexical: SparseVector
    dense: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit of a search: the id of a passage, and its score, an inner product, higher is better."""

    passage_id: str
    score: float


class PassageIndex(Protocol):
    """Passages with a lexical vector and perhaps a dense one, filtered by reader.

    What was written is found at once by the next search, and survives a kill -9 after `upsert` returned.
    Raises IndexUnavailable when the index cannot be reached.
    """

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        """Write passages; those with a known id are replaced."""
        ...

    async def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove all passages of these documents; unknown ids are ignored."""
        ...

    async def clear(self, dimensions: int) -> None:
        """Remove everything and expect dense vectors of this length from now on; 0: none."""
        ...

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[Hit]:
        """The passages readable by one of `readers` with the highest inner product above 0, best first."""
        ...

    async def search_dense(self, query: NDArray[np.float32], readers: frozenset[str], limit: int) -> list[Hit]:
        """The passages readable by one of `readers` with the highest inner product, best first."""
        ...

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[Passage]:
        """These passages in this order, without those that are gone or that none of `readers` may read."""
        ...

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        """A document's passages in order; empty if it does not exist or none of `readers` may read it."""
        ...

    def scan(self, document_ids: Sequence[str] | None = None) -> AsyncIterator[Passage]:
        """Every passage (of these documents), whoever may read it: to learn term statistics from, never to show."""
        ...

    async def content_hashes(self, source: str) -> dict[str, str]:
        """Document id → content hash of everything indexed from this source."""
        ...

    async def count(self) -> int:
        """The number of passages."""
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """A pretrained embedding model.

    Every call raises ModelUnavailable when the model fails or does not answer.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length for each text."""
        ...

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """A vector of unit length; its inner product with a passage's row says how near they are."""
        ...
