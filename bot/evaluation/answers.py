"""`plumbline eval answers` with keys: measure whether the shown text states the answer.

A question's `key` is a regular expression for text that states the answer (case-insensitive, `.` matches line ends),
as it stands or in its words alone; each expression of `key_must` has to match too. A question without a key has no
answer in the corpus.

FIGURES says what each share is. `words` is the median number of words shown, over the answers to all questions;
`words_certain` and `words_uncertain` are those of answers without and with a hedge.

With a language model, three rows are paired: `evidence`, the evidence engine alone; `model`, where the model is taken
at its word wherever the evidence engine is not certain, if it did not fail to write in its exam; and `plumbline`, the product, which trusts the model as far as its exam
proved and does not ask a model that failed it. `seconds` and `tokens` (read, of which from the cache)
are medians over the questions that the model was asked.
"""

from __future__ import annotations

import asyncio
import random
import re
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from rich.console import Console

from adapters.model_formats import ENCODER, ArrayFile
from adapters.qdrant_edge import EdgeIndex
from adapters.sources.formats import parse, title_from
from bot.evaluation.report import (
    ASKING,
    NO_MODEL,
    SEED,
    CallCost,
    OpenedModel,
    RecordedModel,
    cell,
    costs,
    json_lines,
    paired,
    print_model,
    print_rows,
    wilson_interval,
)
from core.answering.answer_view import further_excerpts, shown_sentences
from core.answering.excerpts import word_count
from core.answering.find import ENGINE, find_answer
from core.answering.model_answer import composed_answer, needs_model
from core.answering.model_exam import WRITES, Marks, examined, skill_of
from core.knowledge.markdown import without_links
from core.knowledge.retriever import Retriever
from core.model.answer import Answer
from core.model.conversation import Audience, Person, Place, Platform, Question, Speaker, Turn
from core.model.document import Document
from core.model.errors import MalformedInput
from core.model_calls.choice import Skill
from core.ports import Embedder, KnowledgeSource
from handlers.knowledge.ingest_knowledge import embed_passages, ingest_knowledge

FIGURES = {
    "states": "of the questions with an answer, those whose first excerpt or composed answer states it",
    "shown": "of these, those where what is shown whole, one excerpt or three to choose from, states it",
    "states_anywhere": "of these, those where it, or the line that is shown of an excerpt below it, states it",
    "certain_precision": "of the answers without a hedge, those that state what was asked",
    "certain_share": "of the questions with an answer, those answered without a hedge",
    "hedged_right": "of the answers that state what was asked, those with a hedge",
    "abstained": "of the questions without an answer, those not answered",
    "wrongly_abstained": "of the questions with an answer, those not answered",
}

# The medians of the words shown, each with the kinds of answers that count: certain or not.
WORDS = {"words": (True, False), "words_certain": (True,), "words_uncertain": (False,)}

_ANY_CASE = re.IGNORECASE | re.DOTALL
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,500}>")
_MARKS = re.compile(r"[*`|]++|(?<!\w)_++|_++(?!\w)|^[ \t]*>+", re.MULTILINE)
_STRAIGHT = str.maketrans("‘’“”\xa0", "''\"\" ")


@dataclass(frozen=True, slots=True)
class KeyedQuestion:
    """A question, and the expressions that text stating the answer must match; empty if there is no answer.

    `before` are the earlier questions of the conversation, in order.
    """

    question: str
    corpus: str
    kind: str
    keys: tuple[re.Pattern[str], ...] = ()
    before: tuple[str, ...] = ()

    def stated_in(self, text: str) -> bool:
        read = readable(text)
        return bool(self.keys) and all(key.search(text) or key.search(read) for key in self.keys)


@dataclass(frozen=True, slots=True)
class MethodReply:
    """A method's reply to a question: all that is shown whole, the passages offered below it, and the first that is shown.

    `first` is `shown` unless it is given.
    """

    case: KeyedQuestion
    shown: str
    offered: tuple[str, ...] = ()
    certain: bool = False
    first: str | None = None

    @property
    def states(self) -> bool:
        return self.case.stated_in(self.shown if self.first is None else self.first)

    @property
    def states_anywhere(self) -> bool:
        return any(map(self.case.stated_in, (self.shown, *self.offered)))


def run(
    questions: Path,
    corpora: Sequence[Path],
    embedder: Embedder | None = None,
    llm: OpenedModel = NO_MODEL,
    sample: int = 0,
) -> dict[str, Any]:
    """Return the figures described above, with dense vectors if there is an embedder. Raises MalformedInput for an invalid file.

    A question whose `corpus` is the end of a file's name (`ops` of `corpus-ops.jsonl.gz`) is asked of that file alone,
    any other of all files together. With a `sample`, so many questions are drawn by SEED.
    """
    return asyncio.run(_measured(cases_of(questions, sample), corpora, embedder, llm))


async def _measured(
    cases: Sequence[KeyedQuestion], corpora: Sequence[Path], embedder: Embedder | None, llm: OpenedModel
) -> dict[str, Any]:
    replies: dict[str, list[MethodReply]] = {}
    milliseconds: list[float] = []
    async with llm as model:
        marks = await examined(model, ASKING) if model is not None else Marks(0, 0, 0)
        engines = Engines(model, skill_of(marks), writes=marks.write >= WRITES)
        for group, files in by_corpus(cases, corpora):
            by_method, took = await _answered(group, files, embedder, engines)
            milliseconds += took
            for method, more in by_method.items():
                replies.setdefault(method, []).extend(more)
        about = {"model": model.name, "exam": str(marks), **costs(engines.asked)} if model else {}
    return {
        "measure": "answers",
        "engine": model.name if model else ENGINE,
        "embeddings": embedder.name if embedder else "none",
        "seed": SEED,
        "cases": len(cases),
        "p50_ms": round(float(np.percentile(milliseconds, 50)), 1),
        "p95_ms": round(float(np.percentile(milliseconds, 95)), 1),
        **about,
        **({"paired": {name: _compared(replies, name) for name in ("model", "plumbline")}} if model else {}),
        **tables_of(replies),
    }


def by_corpus(
    cases: Sequence[KeyedQuestion], corpora: Sequence[Path]
) -> Iterator[tuple[list[KeyedQuestion], Sequence[Path]]]:
    """Yield the cases that are asked of the same files, with these files."""
    for name, group in groupby(sorted(cases, key=lambda case: case.corpus), key=lambda case: case.corpus):
        files = [path for path in corpora if path.name.split(".")[0].endswith(name)] if name else []
        yield list(group), files or corpora


def cases_of(questions: Path, sample: int = 0) -> list[KeyedQuestion]:
    """Return the cases of a file; with a `sample`, so many of them, drawn by SEED. Raises MalformedInput.

    `after` refers to the row with the preceding question.
    """
    rows: list[Any] = json_lines(questions, "question", "key")
    by_id = {row["id"]: row for row in rows if "id" in row}

    def before(row: Mapping[str, Any]) -> tuple[str, ...]:
        first = by_id.get(row.get("after") or "")
        return (*before(first), first["question"]) if first else ()

    try:
        cases = [
            KeyedQuestion(
                row["question"],
                row.get("corpus") or "",
                row.get("kind") or "",
                tuple(re.compile(key, _ANY_CASE) for key in (row["key"], *(row.get("key_must") or ())) if key),
                before(row),
            )
            for row in rows
        ]
    except re.error as error:
        raise MalformedInput(f"{questions} has a key that is not a regular expression: {error}.") from error
    return random.Random(SEED).sample(cases, sample) if 0 < sample < len(cases) else cases


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    """Print the figures with their intervals, then those by kind and by corpus."""
    results = figures["results"]
    rows = [
        (name, *(cell(row, name, ".0f" if name in WORDS else ".2f") for row in results.values()))
        for name in (*FIGURES, *WORDS)
    ]
    print_rows(console, ("figure", *results), rows, f"{figures['cases']} questions")
    shown = (
        "cases",
        "states",
        "shown",
        "certain_precision",
        "certain_share",
        "abstained",
        "wrongly_abstained",
    )
    for part in ("by_kind", "by_corpus"):
        rows = [(name, *(cell(row["plumbline"], key) for key in shown)) for name, row in figures[part].items()]
        if rows:
            print_rows(console, (part.removeprefix("by_"), *shown), rows)
    print_model(figures, console)
    for name, meaning in FIGURES.items():
        console.print(f"{name}: {meaning}", highlight=False)
    console.print(f"An answer takes {figures['p50_ms']} ms (P50), {figures['p95_ms']} ms (P95).")


def _compared(replies: Mapping[str, Sequence[MethodReply]], name: str) -> dict[str, int]:
    both = zip(replies[name], replies["evidence"], strict=True)
    return paired((each.states, before.states) for each, before in both)


def figures_of(replies: Sequence[MethodReply]) -> dict[str, Any]:
    """Return the figures of one method with Wilson intervals; None if no question counts."""
    answerable = [each for each in replies if each.case.keys]
    stating = [each for each in answerable if each.states]
    values = {
        "states": [each.states for each in answerable],
        "shown": [each.case.stated_in(each.shown) for each in answerable],
        "states_anywhere": [each.states_anywhere for each in answerable],
        "certain_precision": [each.states for each in replies if each.certain],
        "certain_share": [each.certain for each in answerable],
        "hedged_right": [not each.certain for each in stating],
        "abstained": [not each.shown for each in replies if not each.case.keys],
        "wrongly_abstained": [not each.shown for each in answerable],
    }
    figures: dict[str, Any] = {"cases": len(replies)}
    for name, held in values.items():
        figures[name] = round(sum(held) / len(held), 4) if held else None
        figures[f"{name}_ci"] = wilson_interval(held) if held else None
    lengths = {
        name: [word_count(each.shown) for each in replies if each.shown and each.certain in kinds]
        for name, kinds in WORDS.items()
    }
    return figures | {name: statistics.median(counts) if counts else 0 for name, counts in lengths.items()}


def tables_of(replies: Mapping[str, Sequence[MethodReply]]) -> dict[str, Any]:
    """Return the figures of each method: of all questions, by kind and by corpus."""
    return {
        "results": {name: figures_of(rows) for name, rows in replies.items()},
        "by_kind": _by(replies, lambda case: case.kind),
        "by_corpus": _by(replies, lambda case: case.corpus),
    }


def _by(replies: Mapping[str, Sequence[MethodReply]], part: Callable[[KeyedQuestion], str]) -> dict[str, Any]:
    names = sorted({part(each.case) for rows in replies.values() for each in rows} - {""})
    return {
        name: {
            method: figures_of([each for each in rows if part(each.case) == name]) for method, rows in replies.items()
        }
        for name in names
    }


class Engines:
    """The engines that are compared, and the costs of the model's calls."""

    def __init__(self, model: RecordedModel | None, skill: Skill | None, *, writes: bool) -> None:
        self._model = model
        self._skill = skill
        self._at_its_word = Skill(1.0, writes=float(writes))
        self.asked: list[list[CallCost]] = []  # of each question that the model was asked

    async def answers(self, question: Question, retriever: Retriever) -> dict[str, Answer]:
        judged = await find_answer(question, retriever)
        if self._model is None:
            return {"plumbline": judged[0]}
        answers = {"evidence": judged, "model": judged, "plumbline": judged}
        for name, skill in (("model", self._at_its_word), ("plumbline", self._skill)):
            if skill is not None and needs_model(judged[0], skill):
                before = len(self._model.calls)
                answers[name] = await composed_answer(question, judged, retriever, self._model, ASKING, skill)
                if name == "model":
                    self.asked.append(self._model.calls[before:])
        return {name: answer for name, (answer, _) in answers.items()}


async def _answered(
    cases: Iterable[KeyedQuestion], corpora: Sequence[Path], embedder: Embedder | None, engines: Engines
) -> tuple[dict[str, list[MethodReply]], list[float]]:
    """Return the replies of each engine, and the milliseconds that each question took."""
    replies: dict[str, list[MethodReply]] = {}
    milliseconds: list[float] = []
    async with indexed(corpus_files(corpora), embedder) as retriever:
        audience = Audience()
        for case in cases:
            history: list[Turn] = []
            for earlier in case.before:
                answer, _ = await find_answer(asked_of(earlier, audience, history), retriever)
                history += [Turn(Speaker.PERSON, earlier), Turn(Speaker.PLUMBLINE, shown_text(answer))]
            started = time.perf_counter()
            answers = await engines.answers(asked_of(case.question, audience, history), retriever)
            milliseconds.append(1000 * (time.perf_counter() - started))
            for name, answer in answers.items():
                offered = tuple(text for text, _ in further_excerpts(answer))
                replies.setdefault(name, []).append(
                    MethodReply(
                        case,
                        shown_text(answer),
                        offered,
                        not (answer.abstained or answer.tentative),
                        shown_text(replace(answer, further=())),
                    )
                )
    return replies, milliseconds


def readable(text: str) -> str:
    """Return the words of a text: without tags, link targets, emphasis and marks, with straight quotes and single spaces."""
    return " ".join(unescape(_MARKS.sub("", without_links(_TAG.sub("", text)))).translate(_STRAIGHT).split())


def shown_text(answer: Answer) -> str:
    """Return the text of an answer as a chat shows it, empty if there is none."""
    return "\n".join(sentence.text for sentence in shown_sentences(answer))


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A JSON lines file of documents as a knowledge source."""

    name: str
    path: Path

    async def documents(self) -> AsyncIterator[Document]:
        for row in json_lines(self.path, "path", "text"):
            yield _document(self.name, row["path"], row["text"])


def corpus_files(corpora: Sequence[Path]) -> list[CorpusFile]:
    return [CorpusFile(str(number), path) for number, path in enumerate(corpora, start=1)]


def _document(source: str, path: str, text: str) -> Document:
    try:
        ((part,), _) = parse(".md", text.encode("utf-8", "replace"))
        title, body = part.title, part.text
    except MalformedInput:
        title, body = "", text
    place = PurePosixPath(path)
    family = place.parts[0] if len(place.parts) > 1 else source
    return Document(f"{source}/{path}", source, family, title or title_from(place), body)


_ASKER, _PLACE = Person(Platform.TERMINAL, ""), Place(Platform.TERMINAL, "")
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def indexed(sources: Sequence[KnowledgeSource], embedder: Embedder | None = None) -> AsyncGenerator[Retriever]:
    """Ingest sources as the product does, and yield what searches them."""
    with tempfile.TemporaryDirectory(prefix="plumbline-eval-") as folder:
        index, encoders = EdgeIndex(Path(folder) / "index"), ArrayFile(Path(folder) / "encoder.npz", ENCODER)
        await ingest_knowledge(sources, index, encoders, embedder)
        if embedder is not None:
            await embed_passages(index, encoders, embedder)
        yield Retriever(index, encoders, embedder)
        await index.close()


def asked_of(text: str, audience: Audience, history: Sequence[Turn] = ()) -> Question:
    """Return a question from this audience, with the earlier conversation."""
    return Question("", text, _ASKER, _PLACE, audience, _NOW, tuple(history))
