"""Ports of the knowledge sources, the passage index, the language model and locally learned models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.model.document import Document, Passage
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A document, or a part of it, that a source contains but that cannot be indexed. `path` names it within the source.

    `is_indexed`: the document is indexed, but without what `reason` names: a property that was not understood, messages
    that cannot be read, or a part that is written elsewhere.
    """

    path: str
    reason: str
    is_indexed: bool = False


class KnowledgeSource(Protocol):
    """A source of documents that is read as a whole."""

    @property
    def name(self) -> str:
        """Return the name, unique among the sources. It is the first part of the documents' ids."""
        ...

    def documents(self) -> AsyncIterator[Document | LeftOut]:
        """Yield every current document once, in any order, and every document that is left out.

        Raises SourceUnavailable if the source cannot be read completely; nothing is then deleted.
        """
        ...


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """A part of a source's changes. Once it is indexed, reading continues at `cursor`, in any process.

    `documents` are new or possibly changed; `removed_ids` are no longer in the source. `left_out` are documents that
    cannot be indexed as they are; a source reports them at every reading.
    """

    documents: tuple[Document, ...]
    removed_ids: frozenset[str]
    cursor: str
    left_out: tuple[LeftOut, ...] = ()


@runtime_checkable
class ChangingSource(Protocol):
    """A source of documents that can report changes since it was last read."""

    @property
    def name(self) -> str:
        """Return the name, unique among the sources. It is the first part of the documents' ids."""
        ...

    def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        """Yield the changes since `cursor`, in parts to be applied in order; all documents if the cursor is empty or
        invalid.

        `known_ids` are the ids of the source's indexed documents. After the last part, the index matches the source. A
        part is indexed before its cursor is saved, so a killed process loses nothing. Raises SourceUnavailable if the
        source cannot be read further; earlier parts remain valid.
        """
        ...


@runtime_checkable
class CheckedSource(Protocol):
    """A source whose access can be checked without reading everything."""

    async def check(self) -> None:
        """Raise SourceUnavailable if the token, its permissions or the connection are wrong."""
        ...


@dataclass(frozen=True, slots=True)
class SourceCursor:
    """The position up to which a source was read, and the number of its documents in the index at that time.

    If the index contains fewer documents, it was lost or replaced, and the source is read from the start.
    """

    position: str
    documents: int


class SecretDetector(Protocol):
    """Finds passwords, keys and tokens."""

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each secret in `text`, in order, without overlaps."""
        ...


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights: `indices` are distinct, ascending unsigned 32-bit numbers, `values` as many weights above 0."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage with its term weights and its embedding: a row of unit length for each chunk, or none."""

    passage: Passage
    lexical: SparseVector
    dense: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hit:
    """A search hit. The score is an inner product; higher is better."""

    passage_id: str
    score: float


class PassageIndex(Protocol):
    """Stores passages with a lexical vector and any number of dense ones, filtered by reader.

    Written passages are visible to the next search, and survive kill -9 once `upsert` has returned. Raises
    IndexUnavailable if the index cannot be reached.
    """

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        """Write passages, replacing those with the same id."""
        ...

    async def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Delete all passages of these documents. Unknown ids are ignored."""
        ...

    async def clear(self, dimensions: int) -> None:
        """Delete everything, and expect dense vectors of this length from now on (0: none)."""
        ...

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[Hit]:
        """Return the passages readable by one of `readers` with the highest inner product above 0, best first."""
        ...

    async def search_dense(self, query: NDArray[np.float32], readers: frozenset[str], limit: int) -> list[Hit]:
        """Return the passages readable by one of `readers` whose nearest row has the highest inner product, best first."""
        ...

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[Passage]:
        """Return these passages in order, without those that are deleted or not readable by any of `readers`."""
        ...

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        """Return a document's passages in order; empty if it does not exist or none of `readers` may read it."""
        ...

    def scan(self, document_ids: Sequence[str] | None = None) -> AsyncIterator[Passage]:
        """Yield every passage (of these documents), regardless of readers: for term statistics, never to be shown."""
        ...

    async def content_hashes(self, source: str) -> dict[str, str]:
        """Return the content hash of every document indexed from this source, by document id."""
        ...

    async def count(self) -> int:
        """Return the number of passages."""
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """A pretrained embedding model.

    Every call raises ModelUnavailable if the model fails or does not answer.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit-length row for each text."""
        ...

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return a unit-length vector, to be compared with passages by inner product."""
        ...


# A model that reads a question together with each text. It returns the place of every text, that of the best answer first.
# Takes at most a few seconds. Raises ModelUnavailable if the model fails, or does not rate each text once.
Reranker = Callable[[str, Sequence[str]], Awaitable[list[int]]]

T = TypeVar("T")


class LanguageModel(Protocol):
    """A language model. Its output is untrusted text.

    Every call raises ModelUnavailable if the model does not answer within the request's deadline, is overloaded or is
    down, and PromptTooLong if the prompt and `max_tokens` do not fit into the context. Nothing is ever truncated.
    """

    @property
    def name(self) -> str:
        """Return the model's display name."""
        ...

    async def context_tokens(self) -> int:
        """Return the maximum number of tokens of a prompt and its reply together."""
        ...

    async def count_tokens(self, text: str) -> int:
        """Return the length of `text` in tokens of the model; 0 for empty text."""
        ...

    async def abilities(self) -> Abilities:
        """Return what the server can do; of several servers, what all of them can do."""
        ...

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        """Return one reply. With a schema, it is valid JSON under the schema unless truncated at `max_tokens`.

        `on_text` receives the text so far as it grows, if the server streams, and no other text if the reply is repeated.

        Raises InvalidReply if a server without grammars gave no valid reply within its rounds.
        """
        ...

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        """Return `count` independent replies to one prompt, which is computed once if the server supports it."""
        ...

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """Return the probability of each of 2 to 20 distinct `choices` as the whole reply; they sum to 1.

        They are read from the token probabilities of one constrained reply, or estimated by sampling if the server
        reports none.
        """
        ...


class LearnedStore(Protocol[T]):
    """Stores one object that was learned from data, such as the encoder of the corpus, for all processes.

    Raises StoreUnavailable if it is in a database that cannot be reached.
    """

    async def load(self) -> T | None:
        """Return the object saved last; None if there is none that this version can read.

        A save is visible to this process at once, and to others within 2 seconds if it is in a database. Called for
        every query, so it takes microseconds, except for one check every 2 seconds.
        """
        ...

    async def load_newest(self) -> T | None:
        """Return the object saved last by any process, without delay, for a caller that will change it."""
        ...

    async def save(self, learned: T, /) -> None:
        """Replace the object atomically."""
        ...
