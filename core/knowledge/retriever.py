"""A query → the passages that this audience may read, best first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np

from core.conversation import Audience
from core.knowledge.confirmed import confirmed_first
from core.knowledge.document import Passage
from core.knowledge.encoder import EncodedQuery, Encoder
from core.knowledge.ranking import RankedPassage, fused, reranked
from core.knowledge.rerank import DENSE_WEIGHT, LEXICAL_WEIGHT, closeness, weighted
from core.knowledge.statistics import term_number
from core.knowledge.terms import tokens
from core.knowledge.windows import WindowedPassage, windowed
from core.ports import Embedder, EncoderStore, PassageIndex

CANDIDATES = 50  # passages taken from each retriever
RERANKED = 24  # best fused passages that get a closer look; 40 took longer and found hardly a page more
MAX_QUERY = 4_000  # characters of a query that are read
REMEMBERED = 2_000  # passages whose windows are kept in memory: about 25 MB


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages, best first, and the weight (idf) of each distinct term of the query.

    `known` in [0, 1] is the length of the query's vector of weights without the terms that the whole corpus lacks, as a
    share of its full length: what a cosine must be multiplied by to count those terms too.
    """

    passages: list[RankedPassage]
    weights: dict[str, float]
    known: float = 0.0


class Retriever:
    """Lexical and dense search, fused and reranked. Raises IndexUnavailable."""

    def __init__(self, index: PassageIndex, encoders: EncoderStore, embedder: Embedder | None = None) -> None:
        self._index = index
        self._encoders = encoders
        self._embedder = embedder
        self._windows: OrderedDict[tuple[str, str], WindowedPassage] = OrderedDict()

    async def retrieve(self, query: str, audience: Audience, limit: int) -> list[RankedPassage]:
        """The best `limit` passages (at most RERANKED) that `audience` may read; none before anything was ingested."""
        return (await self.search(query, audience, limit)).passages

    async def search(self, query: str, audience: Audience, limit: int) -> Retrieval:
        """The same, with the query's terms and their weights."""
        encoder = await self._encoders.load()
        if encoder is None or limit < 1:
            return Retrieval([], {})
        query = query[:MAX_QUERY]
        encoded = encoder.encode_query(query)
        if self._embedder:
            encoded = replace(encoded, dense=await self._embedder.embed_query(query), fidelity=1.0)
        dense_weight = DENSE_WEIGHT * encoded.fidelity
        lexical = await self._index.search_lexical(encoded.lexical, audience.readers, CANDIDATES)
        dense = await self._index.search_dense(encoded.dense, audience.readers, CANDIDATES) if dense_weight else []
        weights, known = term_weights(encoder, encoded)
        prepared = weighted(tokens(query), weights)
        chosen = fused(lexical, dense, dense_weight / (LEXICAL_WEIGHT + dense_weight))[:RERANKED]
        candidates = [(found, closeness(prepared, self._windowed(found.passage))) for found in chosen]
        ranked = confirmed_first(query, reranked(candidates, dense_weight, encoder.families))
        return Retrieval(ranked[:limit], weights, known)

    def _windowed(self, passage: Passage) -> WindowedPassage:
        """The passage's windows, remembered for the passages that were candidates last."""
        key = (passage.id, passage.content_hash)
        if key in self._windows:
            self._windows.move_to_end(key)
        else:
            self._windows[key] = windowed(passage)
            if len(self._windows) > REMEMBERED:
                self._windows.popitem(last=False)
        return self._windows[key]


def term_weights(encoder: Encoder, query: EncodedQuery) -> tuple[dict[str, float], float]:
    """Each term of a query with its idf, and how much of them is known (see `Retrieval`).

    A term that the corpus lacks weighs as much as the rarest.
    """
    numbers = np.array([term_number(term) for term in query.terms], np.uint32)
    weights = encoder.statistics.idf(numbers)
    length = float(np.linalg.norm(weights))
    known = float(np.linalg.norm(weights[encoder.statistics.frequencies(numbers) > 0]))
    return dict(zip(query.terms, weights.tolist(), strict=True)), known / length if length else 0.0
