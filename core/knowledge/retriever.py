"""A query → the passages that this audience may read, best first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.knowledge.confirmed import confirmed_first
from core.knowledge.encoder import Encoder
from core.knowledge.lexical import K1
from core.knowledge.ranking import RankedPassage, fused, ranked
from core.knowledge.spelling import Spelling, spelt
from core.knowledge.term_numbers import term_number
from core.model.conversation import Audience
from core.model.document import Passage
from core.ports import Embedder, LearnedStore, PassageIndex

CANDIDATES = 50  # passages taken from each search
READ = 16  # best fused passages that are read; 24 took half as long again and changed no figure
DENSE_SHARE = 0.4  # of a fused score, where an embedding model is configured
MAX_QUERY = 4_000  # characters of a query that are read


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages, best first, and the weight of each distinct term of the query.

    `known` in [0, 1] is the share of that weight whose terms stand anywhere in the corpus. `attainable` is the most that
    a passage could score by BM25. `families` are those of the whole corpus.
    """

    passages: list[RankedPassage]
    weights: dict[str, float]
    known: float = 0.0
    attainable: float = 0.0
    families: frozenset[str] = frozenset()


class Retriever:
    """Lexical search, and dense search where an embedding model is configured.

    Raises IndexUnavailable and StoreUnavailable.
    """

    def __init__(self, index: PassageIndex, encoders: LearnedStore[Encoder], embedder: Embedder | None = None) -> None:
        self._index = index
        self._encoders = encoders
        self._embedder = embedder

    async def retrieve(self, query: str, audience: Audience, limit: int) -> list[RankedPassage]:
        """Return the best `limit` passages (at most READ) that `audience` may read; none before anything was ingested."""
        return (await self.search(query, audience, limit)).passages

    async def holds(self, passage_ids: frozenset[str], audience: Audience) -> bool:
        """Tell whether all of these passages are there, and `audience` may read them, as of now."""
        return len(await self._index.read(sorted(passage_ids), audience.readers)) == len(passage_ids)

    async def page(self, document_id: str, audience: Audience) -> list[Passage]:
        """Return a document's passages in order; none if `audience` may not read it."""
        return await self._index.passages_of(document_id, audience.readers)

    async def spelt(self, query: str) -> Spelling:
        """Return what to search for where words of the query are misspelt or in another language."""
        encoder = await self._encoders.load()
        return spelt(query[:MAX_QUERY], encoder.statistics) if encoder is not None else Spelling(query)

    async def search(self, query: str, audience: Audience, limit: int) -> Retrieval:
        """Return the same, with the query's terms and their weights."""
        encoder = await self._encoders.load()
        if encoder is None or limit < 1:
            return Retrieval([], {})
        query = query[:MAX_QUERY]
        encoded = encoder.encode_query(query)
        lexical = await self._index.search_lexical(encoded.lexical, audience.readers, CANDIDATES)
        dense = []
        if self._embedder is not None and encoder.embedder == self._embedder.name:
            vector = await self._embedder.embed_query(query)
            dense = await self._index.search_dense(vector, audience.readers, CANDIDATES)
        scores = fused(lexical, dense, DENSE_SHARE if dense else 0.0)
        found = await self._index.read(list(scores)[:READ], audience.readers)
        weights, known = term_weights(encoder, encoded.terms)
        attainable = (K1 + 1) * sum(count * weights[term] for term, count in encoded.terms.items())
        passages = confirmed_first(query, ranked(found, scores))[:limit]
        return Retrieval(passages, weights, known, attainable, frozenset(encoder.families))


def term_weights(encoder: Encoder, query_terms: Mapping[str, int]) -> tuple[dict[str, float], float]:
    """Return each term of a query with its weight, and how much of them is known (see `Retrieval`).

    A term that the corpus lacks weighs about as much as the rarest.
    """
    numbers = np.array([term_number(term) for term in query_terms], np.uint32)
    weights = encoder.statistics.weights(numbers)
    total = float(weights.sum())
    known = float(weights[encoder.statistics.frequencies(numbers) > 0].sum())
    return dict(zip(query_terms, weights.tolist(), strict=True)), known / total if total else 0.0
