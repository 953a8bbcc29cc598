"""The baselines of `plumbline eval answers`: sections of the corpus, in the order of plain BM25.

Sections are cut at CHARACTERS characters. `bm25_section` shows the best, `bm25_sections` offers the next below it, and
`bm25_quotes` shows as many words of three as are shown of three quotes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bot.evaluation.answers import CorpusFile, KeyedQuestion, MethodReply, by_corpus, tables_of
from core.answering.excerpts import SHOWN_WORDS
from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.terms import terms
from core.model.document import Document

CHARACTERS = 1_000
SECTIONS = 3


def beside(figures: Mapping[str, Any], cases: Sequence[KeyedQuestion], corpora: Sequence[Path]) -> dict[str, Any]:
    """Return the figures of `plumbline eval answers`, with those of the baselines for the same questions."""
    tables = tables_of(asyncio.run(_replies(cases, corpora)))
    joined = {
        part: {name: row | tables[part][name] for name, row in figures[part].items()}
        for part in ("by_kind", "by_corpus")
    }
    return {**figures, "results": figures["results"] | tables["results"], **joined}


async def _replies(cases: Sequence[KeyedQuestion], corpora: Sequence[Path]) -> dict[str, list[MethodReply]]:
    replies: dict[str, list[MethodReply]] = {"bm25_section": [], "bm25_sections": [], "bm25_quotes": []}
    for group, files in by_corpus(cases, corpora):
        ranked = _bm25(await _documents(files))
        for case in group:
            best, *others = ranked(" ".join([*case.before, case.question]))
            replies["bm25_section"].append(MethodReply(case, best))
            replies["bm25_sections"].append(MethodReply(case, best, tuple(others)))
            quotes = [" ".join(each.split(" ")[: SHOWN_WORDS // SECTIONS]) for each in (best, *others)]
            replies["bm25_quotes"].append(MethodReply(case, "\n".join(quotes), (), False, quotes[0]))
    return replies


async def _documents(corpora: Sequence[Path]) -> list[Document]:
    return [
        document
        for number, path in enumerate(corpora, start=1)
        async for document in CorpusFile(str(number), path).documents()
    ]


def _bm25(documents: Iterable[Document]) -> Callable[[str], list[str]]:
    """Return a function from a query to the best sections of all documents, by BM25 over title, heading and text."""
    texts: list[str] = []
    indexed: list[list[str]] = []
    for document in documents:
        for heading, text in sections_of(document):
            texts.append(f"{heading}\n{text}"[:CHARACTERS])
            indexed.append(terms(f"{document.title}\n{heading}\n{text}"))
    index: Any = import_module("rank_bm25").BM25Okapi(indexed)

    def search(query: str) -> list[str]:
        scores: NDArray[np.float64] = index.get_scores(sorted(set(terms(query))))
        return [texts[int(place)] for place in np.argsort(-scores, kind="stable")[:SECTIONS]]

    return search


def sections_of(document: Document) -> list[tuple[str, str]]:
    """Return each heading with the text below it, up to the next heading. Headings without text are left out."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for block in blocks(document.text):
        if block.kind is BlockKind.HEADING:
            sections.append((block.heading, []))
        else:
            sections[-1][1].append(block.text)
    return [(heading, "\n\n".join(texts)) for heading, texts in sections if texts]
