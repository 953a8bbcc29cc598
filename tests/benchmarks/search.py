"""`python -m tests.benchmarks search`: measure whether the search finds the document that answers, and notices if there is none.

Every method ranks the same corpus; a document ranks as its best passage. `tfidf`, `bm25`, `dense` and `ensemble` are
the retrievers of the Ericsson chatbot (section VI-G), the last two only with an embedding model. `plumbline` ranks a
document as its best excerpt, as answers do.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from adapters.model_formats import ENCODER, ArrayFile
from adapters.qdrant_edge import EdgeIndex
from bot.evaluation.answers import CorpusFile
from bot.evaluation.report import SEED, bootstrap_interval, cell, json_lines, print_rows
from core.answering.certainty import ANSWER_THRESHOLD
from core.answering.excerpts import candidates
from core.answering.find import ENGINE, answer, search
from core.knowledge.retriever import CANDIDATES, Retriever, fused
from core.knowledge.terms import Encoder
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.document import Passage
from core.ports import Embedder, Hit
from handlers.knowledge.ingest_knowledge import embed_passages, ingest_knowledge

CUTOFFS = (1, 3, 5)
ANSWERED_SHARE = 0.9  # of the answerable questions, answered at the reported threshold
READERS = frozenset({PUBLIC})

Method = Callable[[str], Awaitable[list[str]]]  # query → distinct document ids, best first


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """A question and the path of the document that answers it; empty if there is none."""

    question: str
    gold_path: str = ""


def run(
    questions: Path, corpora: Sequence[Path], unanswerable: Path | None = None, embedder: Embedder | None = None
) -> dict[str, Any]:
    """Return the figures. Raises MalformedInput for an invalid file.

    `embedder` provides dense vectors; without it, the search is lexical.
    """
    return asyncio.run(_run(questions, corpora, unanswerable, embedder))


async def _run(
    questions: Path, corpora: Sequence[Path], unanswerable: Path | None, embedder: Embedder | None
) -> dict[str, Any]:
    answerable = [
        PageQuestion(row["question"], row["gold_doc"]) for row in json_lines(questions, "question", "gold_doc")
    ]
    without = [PageQuestion(row["question"]) for row in json_lines(unanswerable, "question")] if unanswerable else []
    async with _corpus(corpora, embedder) as corpus:
        figures: dict[str, Any] = {
            "measure": "retrieval",
            "engine": ENGINE,
            "embeddings": embedder.name if embedder else "none",
            "seed": SEED,
            "cases": len(answerable),
            "documents": corpus.documents,
            "passages": len(corpus.passages),
            "results": {name: await _measured(method, answerable) for name, method in corpus.methods().items()},
        }
        if without:
            figures["abstention"] = _abstention(
                [await corpus.confidence(case.question) for case in answerable],
                [await corpus.confidence(case.question) for case in without],
            )
    return figures


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    title = f"{figures['cases']} questions, {figures['documents']} documents, {figures['passages']} passages"
    keys = ("recall@1", "recall@3", "recall@5", "mrr", "p50_ms", "p95_ms")
    rows = [
        (name, *(cell(row, key, ".1f" if key.endswith("ms") else ".3f") for key in keys))
        for name, row in figures["results"].items()
    ]
    print_rows(console, ("method", *keys), rows, title)
    if abstention := figures.get("abstention"):
        console.print(
            f"At the threshold {abstention['threshold']:.3f}, {abstention['answered']:.0%} of the answerable questions are "
            f"answered and {abstention['abstained']:.0%} of the {abstention['unanswerable']} unanswerable ones are not. At the "
            f"shipped threshold {ANSWER_THRESHOLD:.2f}: {abstention['answered_shipped']:.0%} and {abstention['abstained_shipped']:.0%}."
        )


@dataclass(frozen=True, slots=True)
class _Corpus:
    """An ingested corpus, and the methods that search it."""

    documents: int
    passages: Mapping[str, Passage]
    index: EdgeIndex
    encoder: Encoder
    retriever: Retriever
    embedder: Embedder | None

    def methods(self) -> dict[str, Method]:
        """Return the methods by name; dense ones only with an embedding model."""
        return {
            "tfidf": _tfidf(list(self.passages.values())),
            "bm25": self._bm25,
            **({"dense": self._dense, "ensemble": self._ensemble} if self.embedder else {}),
            "plumbline": self._plumbline,
        }

    async def confidence(self, text: str) -> float:
        """Return the measure that decides whether a question is answered."""
        question = Question("", text, Person(Platform.TERMINAL, ""), Place(Platform.TERMINAL, ""), Audience(), _NOW)
        return answer(question, text, await search(text, Audience(), self.retriever))[1].coe

    async def _bm25(self, query: str) -> list[str]:
        return self._documents(hit.passage_id for hit in await self._lexical(query))

    async def _dense(self, query: str) -> list[str]:
        return self._documents(hit.passage_id for hit in await self._nearest(query))

    async def _ensemble(self, query: str) -> list[str]:
        return self._documents(fused(await self._lexical(query), await self._nearest(query), 0.5))

    async def _plumbline(self, query: str) -> list[str]:
        retrieval = await search(query, Audience(), self.retriever)
        return _ranked(candidate.passage for candidate in candidates(query, retrieval))

    def _documents(self, passage_ids: Iterable[str]) -> list[str]:
        return _ranked(self.passages[key] for key in passage_ids)

    async def _lexical(self, query: str) -> list[Hit]:
        return await self.index.search_lexical(self.encoder.encode_query(query).lexical, READERS, CANDIDATES)

    async def _nearest(self, query: str) -> list[Hit]:
        assert self.embedder is not None
        return await self.index.search_dense(await self.embedder.embed_query(query), READERS, CANDIDATES)


_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def _corpus(files: Sequence[Path], embedder: Embedder | None) -> AsyncGenerator[_Corpus]:
    with tempfile.TemporaryDirectory(prefix="plumbline-eval-") as folder:
        index, encoders = EdgeIndex(Path(folder) / "index"), ArrayFile(Path(folder) / "encoder.npz", ENCODER)
        sources = [CorpusFile(str(number), path) for number, path in enumerate(files, start=1)]
        report = await ingest_knowledge(sources, index, encoders, embedder)
        if embedder is not None:
            await embed_passages(index, encoders, embedder)
        encoder = await encoders.load()
        assert encoder is not None
        passages = dict(sorted([(passage.id, passage) async for passage in index.scan()]))
        yield _Corpus(report.added, passages, index, encoder, Retriever(index, encoders, embedder), embedder)
        await index.close()


async def _measured(method: Method, cases: Sequence[PageQuestion]) -> dict[str, Any]:
    ranks: list[float] = []
    milliseconds: list[float] = []
    for case in cases:
        started = time.perf_counter()
        documents = await method(case.question)
        milliseconds.append(1000 * (time.perf_counter() - started))
        paths = [document.partition("/")[2] for document in documents]
        ranks.append(paths.index(case.gold_path) + 1 if case.gold_path in paths else np.inf)
    figures: dict[str, Any] = {}
    for cutoff in CUTOFFS:
        hits = [float(rank <= cutoff) for rank in ranks]
        figures |= {f"recall@{cutoff}": round(float(np.mean(hits)), 4), f"recall@{cutoff}_ci": bootstrap_interval(hits)}
    low, high = np.percentile(milliseconds, [50, 95])
    return figures | {
        "mrr": round(float(np.mean([1 / rank for rank in ranks])), 4),
        "p50_ms": round(float(low), 3),
        "p95_ms": round(float(high), 3),
    }


def _abstention(answerable: Sequence[float], unanswerable: Sequence[float]) -> dict[str, Any]:
    """Return abstention at the threshold that still answers ANSWERED_SHARE of the answerable questions, and as shipped."""
    threshold = sorted(answerable)[int(len(answerable) * (1 - ANSWERED_SHARE))]
    abstained = [float(score < threshold) for score in unanswerable]
    return {
        "unanswerable": len(unanswerable),
        "threshold": round(threshold, 4),
        "answered": round(float(np.mean([score >= threshold for score in answerable])), 4),
        "abstained": round(float(np.mean(abstained)), 4),
        "abstained_ci": bootstrap_interval(abstained),
        "answered_shipped": round(float(np.mean([score >= ANSWER_THRESHOLD for score in answerable])), 4),
        "abstained_shipped": round(float(np.mean([score < ANSWER_THRESHOLD for score in unanswerable])), 4),
    }


def _tfidf(passages: Sequence[Passage]) -> Method:
    vectorizer: Any = import_module("sklearn.feature_extraction.text").TfidfVectorizer()
    matrix: Any = vectorizer.fit_transform([passage.indexed_text for passage in passages])

    async def search(query: str) -> list[str]:
        row: Any = vectorizer.transform([query])
        scores: NDArray[np.float64] = (matrix @ row.T).toarray().ravel()
        best: list[int] = np.argsort(-scores, kind="stable")[:CANDIDATES].tolist()
        return _ranked(passages[index] for index in best)

    return search


def _ranked(passages: Iterable[Passage]) -> list[str]:
    return list(dict.fromkeys(passage.document_id for passage in passages))
