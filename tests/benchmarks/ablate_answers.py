"""What each mechanism of answering is worth: the figures of seven sets of questions with one mechanism taken out at a time.

    python -m tests.benchmarks ablate-answers --data DIR [--only NAME…] [--json FILE]

DIR holds `real-qa`, `real-qa-2`, `docs-faq`, `alert-runbooks` and `sample-questions`, each with questions and documents.

The figure of a set is the share of its questions whose shown answer states what was asked (`ops`, `runbooks`, `tools`, `company`, `sample`:
those that the sample company's documents answer), or whose page stands among the first three (`faq`) or first (`alerts`,
their names masked). `withheld` is the share of all questions without an answer that are not answered. A loss of more than
half an interval is marked with a star.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bot.commands.demo import SAMPLE_COMPANY
from bot.config.settings import EMBEDDED, load_settings
from bot.config.workspace import load_workspace
from bot.evaluation.answers import KeyedQuestion, asked_of, cases_of, corpus_files, indexed
from bot.evaluation.report import json_lines, wilson_interval
from bot.wiring.application import embedder, ingest, open_core
from core.answering.answer_view import shown_sentences
from core.answering.excerpts import candidates
from core.answering.find import find_answer, search
from core.knowledge.retriever import Retriever
from core.knowledge.terms import Spelling, TermStatistics
from core.model.conversation import PUBLIC, Audience, Speaker, Turn

FIRST = {"faq": 3, "alerts": 1}  # of the pages found, so many may come before the right one, itself counted
SETS = ("ops", "runbooks", "tools", "company", "faq", "alerts", "sample")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What is put in its place, by the dotted name of what it replaces. With `indexed`, the documents are read anew."""

    name: str
    instead: dict[str, Any]
    indexed: bool = False


async def _no_meaning(*_: object) -> NDArray[np.float32]:
    return np.empty(0, np.float32)


async def _as_written(_: Retriever, query: str) -> Spelling:
    return Spelling(query)


def _rarity(statistics: TermStatistics, numbers: NDArray[np.uint32]) -> NDArray[np.float64]:
    frequency = statistics.frequencies(numbers)
    return np.log1p((statistics.passages - frequency + 0.5) / (frequency + 0.5))


MECHANISMS = (
    Mechanism("embedding model", {"core.knowledge.retriever.Retriever._meaning": _no_meaning}),
    Mechanism("search by meaning", {"core.knowledge.retriever.DENSE_SHARE": 0.0}),
    Mechanism("ranking by meaning", {"core.answering.excerpts.MEANING": 0.0}),
    Mechanism("score of the passage", {"core.answering.excerpts.PASSAGE": 0.0}),
    Mechanism("BM25 of the excerpt", {"core.answering.excerpts.EXCERPT": 0.0}),
    Mechanism("rare terms", {"core.answering.excerpts.RARE": 0.0}),
    Mechanism("title of the page", {"core.answering.excerpts.TITLE": 0.0}),
    Mechanism("headings count twice", {"core.answering.excerpts.HEADING_COUNTS": 1}),
    Mechanism("whole sections", {"core.answering.excerpts.WHOLE_WORDS": 140}),
    Mechanism("excerpts within sections", {"core.answering.excerpts._can_begin": lambda *_: False}),
    Mechanism("subject must be there", {"core.answering.certainty.is_off_subject": lambda *_: False}),
    Mechanism("parts of a question", {"core.answering.find.parts": lambda query: (query,)}),
    Mechanism("follow-ups", {"core.answering.find.standalone": lambda query, _: query}),
    Mechanism("spelling", {"core.knowledge.retriever.Retriever.spelt": _as_written}),
    Mechanism("weight of repeated terms", {"core.knowledge.terms.TermStatistics.weights": _rarity}),
    Mechanism("pages before records", {"core.knowledge.retriever.KIND_PRIOR": dict.fromkeys(("page", "thread", "incident"), 1.0)}),
    Mechanism("stemming", {"core.knowledge.terms._stem": str}, indexed=True),
    Mechanism("parts of identifiers", {"core.knowledge.terms._CAMEL": re.compile(r"(?!)"), "core.knowledge.terms._SEPARATOR": re.compile(r"(?!)")}, indexed=True),
    Mechanism("stop words", {"core.knowledge.terms.STOP_WORDS": frozenset[str]()}, indexed=True),
    Mechanism("clean text", {"adapters.sources.formats.clean": str}, indexed=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a set, with the page that answers it or the expressions that its answer matches; neither: no answer."""

    set: str
    case: KeyedQuestion
    page: str = ""

    @property
    def is_answerable(self) -> bool:
        return bool(self.case.keys or self.page)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Ingested documents and the questions about them."""

    asked: Sequence[Asked]
    retriever: Retriever
    audience: Audience


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the mechanisms of answering out, one at a time.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], help="the name of a mechanism; repeatable")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chosen = [each for each in MECHANISMS if not given.only or each.name in given.only]
    rows = asyncio.run(_measured(given.data, chosen))
    _print(rows)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


async def _measured(data: Path, chosen: Sequence[Mechanism]) -> dict[str, dict[str, list[bool]]]:
    rows: dict[str, dict[str, list[bool]]] = {}
    async with _shelves(data) as shelves:
        rows["everything"] = await _figures(shelves)
        for each in chosen:
            if not each.indexed:
                with _without(each):
                    rows[each.name] = await _figures(shelves)
    for each in chosen:
        if each.indexed:
            with _without(each):
                async with _shelves(data) as shelves:
                    rows[each.name] = await _figures(shelves)
    return rows


def _without(mechanism: Mechanism) -> ExitStack:
    stack = ExitStack()
    for name, instead in mechanism.instead.items():
        stack.enter_context(patch(name, instead))
    _forget()
    stack.callback(_forget)
    return stack


def _forget() -> None:
    """Empty what functions of core remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith("core."):
            for each in vars(module).values():
                if isinstance(each, _lru_cache_wrapper):
                    each.cache_clear()


async def _figures(shelves: Iterable[Shelf]) -> dict[str, list[bool]]:
    """Return whether each question of a set is answered right, and of those without an answer whether it is withheld."""
    figures: dict[str, list[bool]] = {name: [] for name in (*SETS, "withheld")}
    for shelf in shelves:
        for question in shelf.asked:
            if not question.is_answerable:
                answer, _ = await find_answer(asked_of(question.case.question, shelf.audience), shelf.retriever)
                figures["withheld"].append(answer.abstained)
            elif question.page:
                figures[question.set].append(await _is_found(question, shelf))
            else:
                figures[question.set].append(await _is_stated(question.case, shelf))
    return figures


async def _is_found(question: Asked, shelf: Shelf) -> bool:
    query = question.case.question
    ranked = candidates(query, await search(query, shelf.audience, shelf.retriever))
    pages = dict.fromkeys(each.passage.document_id.partition("/")[2] for each in ranked)
    return question.page in list(pages)[: FIRST[question.set]]


async def _is_stated(case: KeyedQuestion, shelf: Shelf) -> bool:
    history: list[Turn] = []
    for earlier in case.before:
        answer, _ = await find_answer(asked_of(earlier, shelf.audience, history), shelf.retriever)
        history += [Turn(Speaker.PERSON, earlier), Turn(Speaker.PLUMBLINE, answer.text)]
    answer, _ = await find_answer(asked_of(case.question, shelf.audience, history), shelf.retriever)
    return case.stated_in("\n".join(sentence.text for sentence in shown_sentences(answer)))


@asynccontextmanager
async def _shelves(data: Path) -> AsyncGenerator[list[Shelf]]:
    faq, alerts, model = data / "docs-faq", data / "alert-runbooks", embedder(EMBEDDED)
    files = {
        "faq": (faq / "corpus.jsonl.gz", [faq / "questions.jsonl"]),
        "alerts": (alerts / "corpus-masked.jsonl", [alerts / f"{name}-masked.jsonl" for name in ("questions", "unanswerable")]),
    }  # fmt: skip
    shelves: list[Shelf] = []
    async with AsyncExitStack() as stack:
        for real in (data / "real-qa", data / "real-qa-2"):
            for name, cases in groupby(sorted(cases_of(real / "questions.jsonl"), key=_corpus), key=_corpus):
                file = real / f"corpus-{name}.jsonl.gz"
                retriever = await stack.enter_async_context(indexed(corpus_files([file]), model))
                shelves.append(Shelf([Asked(name, case) for case in cases], retriever, Audience()))
        for name, (corpus, questions) in files.items():
            retriever = await stack.enter_async_context(indexed(corpus_files([corpus]), model))
            rows = [row for file in questions for row in json_lines(file, "question")]
            shelved = [Asked(name, KeyedQuestion(row["question"], "", ""), row.get("gold_doc", "")) for row in rows]
            shelves.append(Shelf(shelved, retriever, Audience()))
        shelves.append(await stack.enter_async_context(_sample(data / "sample-questions" / "questions.jsonl")))
        yield shelves


def _corpus(case: KeyedQuestion) -> str:
    return case.corpus


@asynccontextmanager
async def _sample(questions: Path) -> AsyncGenerator[Shelf]:
    """The sample company, with those of these questions that its documents answer or nothing does."""
    rows = json_lines(questions, "question", "gold_source", "answerable")
    cases = cases_of(questions)
    shelved = [
        Asked("sample", case)
        for row, case in zip(rows, cases, strict=True)
        if row["channel"] == "ask-plumbline"
        and (not row["answerable"] or (row["gold_source"] or "").startswith("documents"))
    ]
    with tempfile.TemporaryDirectory(prefix="plumbline-ablation-") as folder:
        settings = load_settings(data_dir=Path(folder), database_url="", qdrant_url="", embeddings=EMBEDDED)
        async with open_core(settings, load_workspace(SAMPLE_COMPANY / "plumbline.yaml")) as core:
            await ingest(core)
            yield Shelf(shelved, core.knowledge.retriever, Audience(frozenset({PUBLIC, "channel:ask-plumbline"})))


def _print(rows: dict[str, dict[str, list[bool]]]) -> None:
    whole = rows["everything"]
    table = Table("taken out", *whole)
    for name, row in rows.items():
        table.add_row(name, *(_cell(held, whole[key], name == "everything") for key, held in row.items()))
    Console(width=140).print(table)


def _cell(held: Sequence[bool], whole: Sequence[bool], is_whole: bool) -> str:
    low, high = wilson_interval(whole)
    share = sum(held) / len(held)
    if is_whole:
        return f"{share:.2f} [{low:.2f}–{high:.2f}]"
    return f"{share:.2f}{' *' if sum(whole) / len(whole) - share > (high - low) / 2 else ''}"
