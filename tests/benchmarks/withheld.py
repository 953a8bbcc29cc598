"""`python -m tests.benchmarks withheld`: measure whether answers are supported and relevant, and withheld without a source.

Every question is asked twice: with the whole corpus (“with”), and without the document that answers it (“without”). A
document is removed by the audience filter, so the encoder still knows its words, which makes a wrong answer more
likely.

`supported`: of all excerpts of all answers (with and without, shown or offered), the share that the cited document
contains word for word, block by block, ignoring markup, punctuation and case.

`answer_recall`: of the distinct terms (stemmed, without stop words) of the gold answer, the share in the shown text; 0
for an abstention. Gold answers are whole sections, some longer than an excerpt, so 1 cannot be reached.

`citation_precision`: of an answer's citations, including offered ones, the share that are the gold document.

`answered_with_gold`: share of questions that get an answer, possibly tentative, with the gold document.

`abstained_without_gold`: share that, without it, abstain or give only a tentative answer. `silent_without_gold` is the
share of abstentions alone.

`certain_with_gold`: share that get an answer which is not tentative; `certain_precision`: of those, the share whose
first citation is the gold document.

The corpus is ingested as in the product; all evaluations of answers and of retrieval use it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bot.evaluation.answers import CorpusFile, asked_of, corpus_files, indexed
from bot.evaluation.report import SEED, bootstrap_interval, cell, json_lines, print_rows
from core.answering.answer_view import shown_sentences
from core.answering.find import ENGINE, find_answer
from core.knowledge.markdown import blocks
from core.knowledge.retriever import Retriever
from core.knowledge.terms import terms
from core.model.answer import Answer, Citation
from core.model.conversation import Audience
from core.model.document import Document
from core.model.errors import MalformedInput
from core.ports import Embedder

FIGURES = (
    "supported",
    "answer_recall",
    "citation_precision",
    "abstained_without_gold",
    "answered_with_gold",
    "silent_without_gold",
    "certain_with_gold",
    "certain_precision",
)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    question: str
    gold_answer: str
    gold_path: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its answers, with and without the gold document."""

    case: GoldAnswer
    with_gold: Answer
    without_gold: Answer


def run(questions: Path, corpora: Sequence[Path], embedder: Embedder | None = None) -> dict[str, Any]:
    """Return the figures described above, with dense vectors if there is an embedder.

    Raises MalformedInput for an invalid file.
    """
    return asyncio.run(_run(questions, corpora, embedder))


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    title = f"{figures['cases']} questions, each asked with and without its answer"
    print_rows(console, ("figure", "share"), [(name, cell(figures, name, ".3f")) for name in FIGURES], title)


async def _run(questions: Path, corpora: Sequence[Path], embedder: Embedder | None) -> dict[str, Any]:
    rows = json_lines(questions, "question", "answer", "gold_doc")
    cases = [GoldAnswer(row["question"], row["answer"], row["gold_doc"]) for row in rows]
    library = CorpusLibrary(corpus_files(corpora))
    async with indexed([library], embedder) as retriever:
        paths = {document.partition("/")[2] for document in library.texts}
        if missing := next((case.gold_path for case in cases if case.gold_path not in paths), ""):
            raise MalformedInput(f"{questions} names {missing}, which no corpus contains.")
        answered = [await _answered(case, library, retriever) for case in cases]
    return {"measure": "answers", "engine": ENGINE, "seed": SEED, "cases": len(cases)} | _figures(
        answered, library.texts
    )


async def _answered(case: GoldAnswer, library: CorpusLibrary, retriever: Retriever) -> _Asked:
    everybody, others = library.audience(), library.audience(without=case.gold_path)
    with_gold, without_gold = [
        (await find_answer(asked_of(case.question, audience), retriever))[0] for audience in (everybody, others)
    ]
    return _Asked(case, with_gold, without_gold)


def _figures(questions: Sequence[_Asked], texts: Mapping[str, str]) -> dict[str, Any]:
    answered = [each for each in questions if not each.with_gold.abstained]
    certain = [each for each in answered if not each.with_gold.tentative]
    silent = [each.without_gold.abstained for each in questions]
    values = {
        "supported": [held for each in questions for held in _supported(each, texts)],
        "answer_recall": [_recall(each) for each in questions],
        "citation_precision": [_precision(each) for each in answered],
        "abstained_without_gold": [each.without_gold.abstained or each.without_gold.tentative for each in questions],
        "answered_with_gold": [not each.with_gold.abstained for each in questions],
        "silent_without_gold": silent,
        "certain_with_gold": [each in certain for each in questions],
        "certain_precision": [_path(each.with_gold.citations[0]) == each.case.gold_path for each in certain],
    }
    figures: dict[str, Any] = {"excerpts": len(values["supported"])}
    for name in FIGURES:
        shares = [float(value) for value in values[name]] or [0.0]
        figures |= {name: round(float(np.mean(shares)), 4), f"{name}_ci": bootstrap_interval(shares)}
    return figures


def _recall(question: _Asked) -> float:
    gold = set(terms(question.case.gold_answer))
    shown = {term for sentence in shown_sentences(question.with_gold) for term in terms(sentence.text)}
    return len(gold & shown) / len(gold) if gold else 0.0


def _precision(question: _Asked) -> float:
    paths = [_path(source) for source in question.with_gold.citations]
    return paths.count(question.case.gold_path) / len(paths)


def _path(source: Citation) -> str:
    return source.document_id.partition("/")[2]


def _supported(question: _Asked, texts: Mapping[str, str]) -> Iterator[bool]:
    for answer in (question.with_gold, question.without_gold):
        sources = {source.number: source for source in answer.citations}
        for excerpt in (*answer.excerpts, *answer.further):
            yield holds(texts[sources[excerpt.citation].document_id], excerpt.text)


def holds(document: str, excerpt: str) -> bool:
    """Return whether a document contains every block of an excerpt, ignoring markup, punctuation and case."""
    words = f" {_words(document)} "
    return all(f" {_words(block.text)} " in words for block in blocks(excerpt))


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold().replace("_", " ")))


ADDRESS_BITS = 24  # of a document's number; more documents than any evaluation has


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


def _address(number: int) -> Iterator[str]:
    return (f"bit:{place}:{number >> place & 1}" for place in range(ADDRESS_BITS))
