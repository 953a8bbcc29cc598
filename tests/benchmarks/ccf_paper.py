"""The five methods of Evidence-Chain RAG (Table III), as the paper describes them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from tests.benchmarks.ccf_corpus import Chunk
from tests.benchmarks.ccf_lexicon import Keywords
from tests.benchmarks.ccf_reply import CITED, Reply

# from Table III, Method and Table XI
K1, B = 1.5, 0.75  # Okapi BM25
GRAMS = (2, 4)  # shortest and longest character n-gram of the dense vectors
DIMENSIONS = 48
SVD_SEED = 13
BM25_SHARE, DENSE_SHARE = 0.55, 0.45
BASE, OVERLAP, ORDER, DOMAIN = 0.55, 0.22, 0.13, 0.10
VOTERS = 5  # best chunks that vote for a family

# not given in the paper
RERANKED = 30  # best chunks of the hybrid that are scored again
PROFILE_BONUS = 0.02
PROFILE_VOTE = 0.5  # of a profile, beside 1 of a question

# loaded with this module: `run` limits the threads of what is loaded before it begins
_TEXT: Any = import_module("sklearn.feature_extraction.text")
_DECOMPOSITION: Any = import_module("sklearn.decomposition")

_TOKEN = re.compile(r"[a-z0-9][a-z0-9_./+-]*|[\u3400-\u9fff]")

Scores = NDArray[np.float64]


def tokens(text: str) -> list[str]:
    """Technical identifiers whole, Chinese characters each by itself."""
    return _TOKEN.findall(text.lower())


class PaperMethods:
    """All five over one corpus."""

    def __init__(self, chunks: Sequence[Chunk], keywords: Keywords) -> None:
        self._chunks = chunks
        self._keywords = keywords
        self._families = sorted({chunk.family for chunk in chunks})
        self._tokens = [set(tokens(chunk.text)) for chunk in chunks]
        self._texts = [chunk.text.lower() for chunk in chunks]
        self._postings = _postings([tokens(chunk.text) for chunk in chunks])
        self._vectorizer: Any = _TEXT.TfidfVectorizer(analyzer="char", ngram_range=GRAMS)
        matrix: Any = self._vectorizer.fit_transform(self._texts)
        self._svd: Any = _DECOMPOSITION.TruncatedSVD(min(DIMENSIONS, min(matrix.shape) - 1), random_state=SVD_SEED)
        self._dense: Scores = _unit(self._svd.fit_transform(matrix))

    def bm25(self, question: str) -> Reply:
        return self._first(_order(self._bm25(question)))

    def dense_svd(self, question: str) -> Reply:
        return self._first(_order(self._nearest(question)))

    def hybrid(self, question: str) -> Reply:
        return self._first(_order(self._hybrid(question)))

    def hybrid_reranker(self, question: str) -> Reply:
        return self._first([spot for spot, _ in self._reranked(question)])

    def evidence_chain(self, question: str) -> Reply:
        ranked = self._reranked(question)
        support = dict.fromkeys(self._families, 0.0)
        for rank, (spot, score) in enumerate(ranked[:VOTERS], start=1):
            chunk = self._chunks[spot]
            support[chunk.family] += score / rank * (PROFILE_VOTE if chunk.profile else 1.0)
        family = max(self._families, key=lambda name: support[name])
        ranking = tuple(self._chunks[spot] for spot, _ in ranked)
        return Reply(ranking, family, tuple(chunk for chunk in ranking if chunk.family == family)[:CITED])

    def _first(self, spots: Sequence[int]) -> Reply:
        """Answer with the family of the best chunk and cite the best ones, whatever their family."""
        ranking = tuple(self._chunks[spot] for spot in spots)
        return Reply(ranking, ranking[0].family, ranking[:CITED])

    def _bm25(self, question: str) -> Scores:
        scores = np.zeros(len(self._chunks))
        for token in tokens(question):
            if token in self._postings:
                spots, values = self._postings[token]
                scores[spots] += values
        return scores

    def _nearest(self, question: str) -> Scores:
        query: Scores = self._svd.transform(self._vectorizer.transform([question.lower()]))
        return self._dense @ _unit(query)[0]

    def _hybrid(self, question: str) -> Scores:
        return BM25_SHARE * _spread(self._bm25(question)) + DENSE_SHARE * _spread(self._nearest(question))

    def _reranked(self, question: str) -> list[tuple[int, float]]:
        """The chunks with their new scores, best first."""
        base = self._hybrid(question)
        words, lowered = set(tokens(question)), question.lower()
        hints: list[float] = self._keywords.shares(question, self._families).tolist() if self._keywords.weights else []
        domain = dict(zip(self._families, hints, strict=False))

        def score(spot: int) -> float:
            chunk = self._chunks[spot]
            return (
                BASE * float(base[spot])
                + OVERLAP * len(words & self._tokens[spot]) / max(1, len(words))
                + ORDER * LCSseq.similarity(lowered, self._texts[spot]) / max(1, len(lowered))
                + DOMAIN * domain.get(chunk.family, 0.0)
                + (PROFILE_BONUS if chunk.profile else 0.0)
            )

        scored = [(spot, score(spot)) for spot in _order(base)[:RERANKED]]
        return sorted(scored, key=lambda item: -item[1])


def _postings(documents: Sequence[Sequence[str]]) -> dict[str, tuple[NDArray[np.intp], Scores]]:
    """Token → the documents that hold it and what it adds to their score."""
    lengths = [len(document) for document in documents]
    average = sum(lengths) / len(lengths)
    postings: dict[str, list[tuple[int, float]]] = {}
    for spot, document in enumerate(documents):
        norm = K1 * (1 - B + B * lengths[spot] / average)
        for token, count in Counter(document).items():
            postings.setdefault(token, []).append((spot, count * (K1 + 1) / (count + norm)))
    return {
        token: (
            np.array([spot for spot, _ in row], np.intp),
            math.log(1 + (len(documents) - len(row) + 0.5) / (len(row) + 0.5)) * np.array([value for _, value in row]),
        )
        for token, row in postings.items()
    }


def _order(scores: Scores) -> list[int]:
    return np.argsort(-scores, kind="stable").tolist()


def _spread(scores: Scores) -> Scores:
    """Min-max normalised; all 1 if they are equal."""
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)


def _unit(rows: Scores) -> Scores:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
