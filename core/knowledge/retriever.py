"""A query → the passages that this audience may read, best first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.aside import aside
from core.conversation import Audience
from core.knowledge.confirmed import confirmed_first
from core.knowledge.document import Passage
from core.knowledge.encoder import EncodedQuery, Encoder
from core.knowledge.family_model import favoured
from core.knowledge.lexical import K1
from core.knowledge.ranking import Candidate, FusedHit, RankedPassage, fused, reranked
from core.knowledge.rerank import DENSE_WEIGHT, LEXICAL_WEIGHT, closeness, weighted
from core.knowledge.term_numbers import term_number
from core.knowledge.terms import tokens
from core.knowledge.wording import likeness, worded_query
from core.ports import Embedder, EncoderStore, PassageIndex, StoredPassage

CANDIDATES = 50  # passages taken from each retriever
RERANKED = 24  # best fused passages that get a closer look; 40 took longer and found hardly a page more
MAX_QUERY = 4_000  # characters of a query that are read


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages, best first, and the weight of each distinct term of the query.

    `known` in [0, 1] is the length of the query's vector of weights without the terms that the whole corpus lacks, as a
    share of its full length: what a cosine must be multiplied by to count those terms too. `background` in [0, 1] is the
    mean cosine of the CANDIDATES nearest passages, where those that are lacking count 0: how near a passage is to this
    query without answering it, which differs between encoders, corpora and queries. `attainable` is the most that a
    passage could score by BM25, and `breadth` on how many terms that is spread: the square root of their number if all
    weigh the same, at least 1.
    """

    passages: list[RankedPassage]
    weights: dict[str, float]
    known: float = 0.0
    background: float = 0.0
    attainable: float = 0.0
    breadth: float = 1.0


class Retriever:
    """Lexical and dense search, fused and reranked. Raises IndexUnavailable and StoreUnavailable."""

    def __init__(self, index: PassageIndex, encoders: EncoderStore, embedder: Embedder | None = None) -> None:
        self._index = index
        self._encoders = encoders
        self._embedder = embedder

    async def retrieve(self, query: str, audience: Audience, limit: int) -> list[RankedPassage]:
        """The best `limit` passages (at most RERANKED) that `audience` may read; none before anything was ingested."""
        return (await self.search(query, audience, limit)).passages

    async def holds(self, passage_ids: frozenset[str], audience: Audience) -> bool:
        """Whether all of these passages are there, and `audience` may read them, as of now."""
        return len(await self._index.read(sorted(passage_ids), audience.readers)) == len(passage_ids)

    async def page(self, document_id: str, audience: Audience) -> list[Passage]:
        """Return a document's passages in order; none if `audience` may not read it."""
        return await self._index.passages_of(document_id, audience.readers)

    async def search(self, query: str, audience: Audience, limit: int) -> Retrieval:
        """The same, with the query's terms and their weights."""
        encoder = await self._encoders.load()
        if encoder is None or limit < 1:
            return Retrieval([], {})
        query = query[:MAX_QUERY]
        encoded = encoder.encode_query(query)
        if self._embedder:
            encoded = encoded.beside(await self._embedder.embed_query(query))
        dense_weight, readers = DENSE_WEIGHT * encoded.fidelity, audience.readers
        lexical = await self._index.search_lexical(encoded.lexical, readers, CANDIDATES)
        dense = await self._index.search_dense(encoded.dense, readers, CANDIDATES) if dense_weight else []
        weights, known = term_weights(encoder, encoded)
        hits = fused(lexical, dense, dense_weight / (LEXICAL_WEIGHT + dense_weight))[:RERANKED]
        found = await self._index.read([hit.passage_id for hit in hits], readers)
        candidates = await aside(_candidates, query, weights, encoder, hits, found)
        ranked = reranked(candidates, dense_weight, encoder.families)
        ranked = confirmed_first(query, favoured(ranked, encoder.family_model.opinion(query)))
        background = sum(max(0.0, hit.score) for hit in dense) / CANDIDATES
        return Retrieval(ranked[:limit], weights, known, background, *_scale(encoded, weights))


def _candidates(
    query: str, weights: Mapping[str, float], encoder: Encoder, hits: Sequence[FusedHit], found: Sequence[StoredPassage]
) -> list[Candidate]:
    """A closer look at the passages that were found, all at once."""
    by_id = {hit.passage_id: hit for hit in hits}
    close = closeness(weighted(tokens(query), weights), [each.windows for each in found])
    like = likeness(worded_query(query, encoder.statistics), [each.wording for each in found])
    return [
        Candidate(each.passage, by_id[each.passage.id], near, alike)
        for each, near, alike in zip(found, close, like, strict=True)
    ]


def term_weights(encoder: Encoder, query: EncodedQuery) -> tuple[dict[str, float], float]:
    """Each term of a query with its weight, and how much of them is known (see `Retrieval`).

    A term that the corpus lacks weighs about as much as the rarest.
    """
    numbers = np.array([term_number(term) for term in query.terms], np.uint32)
    weights = encoder.statistics.weights(numbers)
    length = float(np.linalg.norm(weights))
    known = float(np.linalg.norm(weights[encoder.statistics.frequencies(numbers) > 0]))
    return dict(zip(query.terms, weights.tolist(), strict=True)), known / length if length else 0.0


def _scale(query: EncodedQuery, weights: dict[str, float]) -> tuple[float, float]:
    """What a query's BM25 scores are to be compared with: `attainable` and `breadth` (see `Retrieval`)."""
    counted = [count * weights[term] for term, count in query.terms.items()]
    total = sum(counted)
    return (K1 + 1) * total, total / math.hypot(*counted) if total else 1.0
