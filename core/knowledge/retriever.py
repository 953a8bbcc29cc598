"""Retrieve the passages for a query that an audience may read, best first.

The family of manuals that a question is about is estimated by its name, its keywords and a vote of the best passages
(Evidence-Chain RAG, Method).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import fsum

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import K1, Encoder, Spelling, distinct_terms, normalised, spelt
from core.model.conversation import PUBLIC, Audience, current_readers
from core.model.document import DocumentKind, Passage, is_curated, question_of
from core.model.errors import ModelUnavailable
from core.ports import ChannelsNow, Embedder, Hit, LearnedStore, PassageIndex, Reranker

CANDIDATES = 50  # passages taken from each search
READ = 16  # best fused passages that are read at least; 24 took 50 % longer and improved no figure without a model
DENSE_SHARE = 0.4  # of a fused score, if an embedding model is configured
MAX_QUERY = 4_000  # characters read of a query
SAME_QUESTION = 0.6  # share of common terms from which two questions are the same
STEPPED_BACK = 0.5  # factor on the scores of the other passages, if one was confirmed as the answer to the question

# A page is a rule; a thread or an incident is about one occasion.
KIND_PRIOR = {DocumentKind.PAGE: 1.0, DocumentKind.THREAD: 0.85, DocumentKind.INCIDENT: 0.8}


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The keywords by which a question names a family of manuals (Evidence-Chain RAG, Method).

    They are names of its products, commands and abbreviations that its pages may not contain.
    """

    keywords: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def hints(self, question: str) -> dict[str, float]:
        """Return the share of each family, in [0, 1], among the keywords in a question; all 0 if it contains none.

        Letter case is ignored. A keyword of letters and digits does not match within a longer word.
        """
        text = normalised(question)
        counts = {
            family: sum(_occurs(keyword, text) for keyword in keywords) for family, keywords in self.keywords.items()
        }
        total = sum(counts.values()) or 1
        return {family: count / total for family, count in counts.items()}


def _occurs(keyword: str, text: str) -> bool:
    before = r"(?<![A-Za-z0-9])" if keyword[:1].isascii() else ""
    after = r"(?![A-Za-z0-9])" if keyword[-1:].isascii() else ""
    return re.search(f"{before}{re.escape(keyword)}{after}", text, re.IGNORECASE) is not None


NO_KEYWORDS = Lexicon()


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A retrieved passage: `score` in [0, 1] is relative to this query and orders the passages.

    `lexical` (BM25) and `dense` (cosine) can be compared between queries; 0 if that search did not return the passage.
    `confirmed` in [0, 1] is the similarity of the question with the one that people confirmed it as the answer to; 0 if these
    are not the same question.
    """

    passage: Passage
    lexical: float
    dense: float
    score: float
    confirmed: float = 0.0


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages, best first, and the weight of each distinct term of the query.

    `known` in [0, 1] is the share of that weight for terms in the corpus. `attainable` is the maximum BM25 score.
    `families` are those of the whole corpus, `hints` the shares of its keywords (`Lexicon.hints`). `vector` is the query's
    embedding by the model `embedder`; both are empty without one. If it `is_reranked`, the passages stand in the order of a
    reranker, and not of their scores.
    """

    passages: list[RankedPassage]
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    known: float = 0.0
    attainable: float = 0.0
    families: frozenset[str] = frozenset()
    hints: Mapping[str, float] = field(default_factory=dict[str, float])
    vector: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    embedder: str = ""
    is_reranked: bool = False


class Retriever:
    """Lexical search, and dense search if an embedding model is configured.

    Raises IndexUnavailable and StoreUnavailable.
    """

    def __init__(
        self,
        index: PassageIndex,
        encoders: LearnedStore[Encoder],
        embedder: Embedder | None = None,
        lexicon: Lexicon = NO_KEYWORDS,
        channels_now: ChannelsNow | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Create the retriever. `channels_now` looks up channels whose passages may have become private since they were
        indexed; without it, none have. `reranker` is for those who choose among the passages.
        """
        self.reranker = reranker
        self._channels_now = channels_now
        self._index = index
        self._encoders = encoders
        self._embedder = embedder
        self._lexicon = lexicon

    async def retrieve(self, query: str, audience: Audience, limit: int) -> list[RankedPassage]:
        """Return the best `limit` passages that `audience` may read; none before anything was ingested."""
        return (await self.search(query, audience, limit)).passages

    async def holds(self, passage_ids: frozenset[str], audience: Audience) -> bool:
        """Return whether all of these passages exist now, and `audience` may read them."""
        held = await self._readable(await self._index.read(sorted(passage_ids), audience.readers), audience)
        return len(held) == len(passage_ids)

    async def page(self, document_id: str, audience: Audience) -> list[Passage]:
        """Return a document's passages in order; none if `audience` may not read it."""
        return await self._readable(await self._index.passages_of(document_id, audience.readers), audience)

    async def spelt(self, query: str) -> Spelling:
        """Return the query to search for instead, if words are misspelt or in another language."""
        encoder = await self._encoders.load()
        return spelt(query[:MAX_QUERY], encoder.statistics) if encoder is not None else Spelling(query)

    async def search(self, query: str, audience: Audience, limit: int) -> Retrieval:
        """Return the passages as `retrieve` does, with the query's terms and their weights."""
        encoder = await self._encoders.load()
        if encoder is None or limit < 1:
            return Retrieval([])
        query = query[:MAX_QUERY]
        encoded = encoder.encode_query(query)
        lexical = await self._index.search_lexical(encoded.lexical, audience.readers, CANDIDATES)
        vector = await self._meaning(query, encoder)
        dense = await self._index.search_dense(vector, audience.readers, CANDIDATES) if vector.size else []
        scores = fused(lexical, dense, DENSE_SHARE if dense else 0.0)
        passages = await self._readable(
            await self._index.read(list(scores)[: max(READ, limit)], audience.readers), audience
        )
        ranked = [
            RankedPassage(each, scores[each.id][1], scores[each.id][2], scores[each.id][0] * KIND_PRIOR[each.kind])
            for each in passages
        ]
        ranked.sort(key=lambda each: (-each.score, each.passage.id))
        attainable = (K1 + 1) * sum(count * encoded.weights[term] for term, count in encoded.counts.items())
        return Retrieval(
            confirmed_first(query, ranked)[:limit],
            encoded.weights,
            encoded.known,
            attainable,
            frozenset(encoder.families),
            self._lexicon.hints(query),
            vector,
            encoder.embedder * bool(vector.size),
        )

    async def _readable(self, passages: list[Passage], audience: Audience) -> list[Passage]:
        """Return the passages that this audience may still read."""
        said_in = {reader for each in passages if PUBLIC in each.readers for reader in each.readers - audience.readers}
        if self._channels_now is None or not said_in:
            return passages
        channels = await self._channels_now(said_in)
        return [each for each in passages if audience.may_read(current_readers(each.readers, channels))]

    async def _meaning(self, query: str, encoder: Encoder) -> NDArray[np.float32]:
        """Return the query's embedding; empty without a model, while passages lack theirs, and if the model fails."""
        if self._embedder is not None and encoder.embedder == self._embedder.name and encoder.embedded:
            with suppress(ModelUnavailable):
                return await self._embedder.embed_query(query)
        return np.empty(0, np.float32)


def fused(lexical: Sequence[Hit], dense: Sequence[Hit], dense_share: float) -> dict[str, tuple[float, float, float]]:
    """Return the fused, lexical and dense score of each hit by passage id, best first.

    `dense_share` in [0, 1] is the dense score's share of the fused one. Each score counts as a share of the best in its
    list. Scores are fused, not ranks, because a search with a clear winner should outvote one without.
    """
    lexical_scores = {hit.passage_id: hit.score for hit in lexical}
    dense_scores = {hit.passage_id: max(hit.score, 0.0) for hit in dense}
    best_lexical, best_dense = max(lexical_scores.values(), default=0.0), max(dense_scores.values(), default=0.0)
    rows = {
        key: (
            (1 - dense_share) * lexical_scores.get(key, 0.0) / (best_lexical or 1.0)
            + dense_share * dense_scores.get(key, 0.0) / (best_dense or 1.0),
            lexical_scores.get(key, 0.0),
            dense_scores.get(key, 0.0),
        )
        for key in lexical_scores | dense_scores
    }
    return dict(sorted(rows.items(), key=lambda row: (-row[1][0], row[0])))


def confirmed_first(query: str, ranked: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Return the passages, with those first that people confirmed as the answer to this question.

    Of several such answers, the one with the most similar question counts, then the one confirmed last.
    """
    oldest = datetime.min.replace(tzinfo=UTC)
    ranked = [replace(each, confirmed=_similarity(query, each.passage)) for each in ranked]
    nearest = max(ranked, key=lambda each: (each.confirmed, each.passage.updated_at or oldest), default=None)
    if nearest is None or not nearest.confirmed:
        return ranked
    document = nearest.passage.document_id
    return [
        *(replace(each, score=1.0) for each in ranked if each.passage.document_id == document),
        *(replace(each, score=STEPPED_BACK * each.score) for each in ranked if each.passage.document_id != document),
    ]


def _similarity(query: str, passage: Passage) -> float:
    """Return the share of common terms of the query and a confirmed question; 0 if they are not the same question.

    If each has a term that the other lacks, such as production and staging, they are not the same.
    """
    if not is_curated(passage.document_id):
        return 0.0
    question_terms, answered = distinct_terms(query), distinct_terms(question_of(passage.title))
    share = len(question_terms & answered) / (len(question_terms | answered) or 1)
    return share if share >= SAME_QUESTION and (question_terms <= answered or answered <= question_terms) else 0.0


MOSTLY = 0.6  # share of the mentions of a product's name that have a capital letter

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_NAME_PART = re.compile(r"[a-z0-9]+", re.IGNORECASE)


def support(query: str, retrieval: Retrieval) -> dict[str, float]:
    """Return the support of the family of each retrieved passage, in [0, 1], as a share of the best supported one's.

    The passages vote with their scores. A family's share of the keywords in the question counts as much as its share of
    the votes, and so does its share of the families that the question names. Only families with keywords of their own and products compete: for a folder such as guides, or for past
    incidents, the support is 1.
    """
    scores: dict[str, list[float]] = {}
    for each in retrieval.passages:
        scores.setdefault(each.passage.family, []).append(each.score)
    products = [family for family in scores if family in retrieval.hints or is_product(family, retrieval)]
    total = fsum(score for family in products for score in scores[family]) or 1.0
    named = named_families(query, retrieval.families).intersection(products)
    shares = {
        family: fsum(scores[family]) / total + retrieval.hints.get(family, 0.0) + (family in named) / (len(named) or 1)
        for family in products
    }
    best = max(shares.values(), default=0.0) or 1.0
    return {family: shares[family] / best if family in shares else 1.0 for family in scores}


def named_families(query: str, families: frozenset[str]) -> frozenset[str]:
    """Return the families that a question names: by their whole name, otherwise by a part of it."""
    lowered = query.lower()
    letters = "".join(_NAME_PART.findall(lowered))
    whole = frozenset(each for each in families if "".join(_NAME_PART.findall(each.lower())) in letters)
    words = {part for part in _NAME_PART.findall(lowered) if len(part) > 3}
    return whole or frozenset(each for each in families if not words.isdisjoint(_NAME_PART.findall(each.lower())))


def is_product(family: str, retrieval: Retrieval) -> bool:
    """Return whether a family is named after a product, such as Loki, and not after a topic, such as guides.

    A part of a product's name is mostly capitalised in the prose of the family's retrieved passages.
    """
    if len(retrieval.families) < 2:
        return False
    prose = "\n".join(
        _CODE.sub("", "\n".join(text for text in (each.passage.title, each.passage.text) if text != family))
        for each in retrieval.passages
        if each.passage.family == family
    )
    for part in filter(lambda part: len(part) > 2, _NAME_PART.findall(family)):
        occurrences = re.findall(rf"(?<![a-z0-9_/.-]){re.escape(part)}(?![a-z0-9_/-])", prose, re.IGNORECASE)
        if occurrences and sum(not each.islower() for each in occurrences) >= MOSTLY * len(occurrences):
            return True
    return False
