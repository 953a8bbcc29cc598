"""What Plumbline makes of a language model of yours: `make benchmarks LLM=URL`.

    python -m tests.benchmarks with-model URL [--data DIR] [--sample N] [--record FILE] [--json FILE]

One row each for its exam, answers, causes, owners and both checkers, beside the evidence engine alone, with the median of
calls and tokens of a case. What needs no data is in the repository: the cases of `rca_cases.jsonl`, and sentences about
pages of the sample company and about outputs of tools, half of them subtly false (`checker_sample.jsonl`,
`checker_causes.jsonl`). Answers are asked of the folder real-qa-3 in DIR, owners of itsm-tickets; without DIR, these rows
are left out. A recording makes an interrupted measurement go on where it stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from adapters.http import client_session
from adapters.llama.connection import LlamaConnection
from adapters.llama.dialect import dialect_of
from bot.config.settings import EMBEDDED, load_settings
from bot.evaluation import answers as eval_answers
from bot.evaluation import triage
from bot.evaluation.report import ASKING, RecordedModel, print_rows, recorded_model, write_json
from bot.wiring.application import embedder
from core.answering.claims import by_judge, by_rules
from core.answering.evidence import NumberedPassages, Written
from core.answering.model_exam import FULL, examined
from core.answering.reply import claims
from core.knowledge.passages import passages_of
from core.model.language_model import Finding, Responsibility
from core.model_calls.prompts import answering as prompts
from core.rca.agent.actions import Snapshots
from handlers.incidents.check_finding import checked_finding
from tests.benchmarks import rca_engines
from tests.benchmarks.checker import SAMPLE as SENTENCES
from tests.benchmarks.checker import cases_in, documents_of, nearest

CASES = Path(__file__).parents[1] / "evaluation" / "data" / "rca_cases.jsonl"
FINDINGS = Path(__file__).with_name("checker_causes.jsonl")
QUESTIONS = 40  # and tickets
QUANTISATION = re.compile(r"\b(?:I?Q\d\w*|BF16|F16|F32|FP8|AWQ|GPTQ|MXFP4|int[48])\b", re.IGNORECASE)
KINDS = {"NativeDialect": "llama-server", "PythonDialect": "llama_cpp.server", "GeneralDialect": "OpenAI's interface"}

Opened = Callable[[], AbstractAsyncContextManager[RecordedModel | None]]


@dataclass(frozen=True, slots=True)
class Row:
    """A measure: how many cases, the share without and with the model, and the medians of calls and tokens of a case."""

    measure: str
    cases: int
    without: float | None
    with_model: float
    calls: float
    tokens: float


async def about(url: str) -> Mapping[str, str]:
    """Return the model, its quantisation as far as its name tells it, and the kind of its server."""
    settings = load_settings()
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
    async with client_session() as session:
        dialect = await dialect_of(LlamaConnection(url, session, key), settings.llm_model, settings.llm_context)
    named = QUANTISATION.search(dialect.model)
    return {
        "model": Path(dialect.model).name,
        "quantisation": named[0] if named else "not told",
        "server": f"{KINDS[type(dialect).__name__]}, {dialect.context:,} tokens, {dialect.slots} at a time",
    }


async def exam(opened: Opened) -> list[Row]:
    async with opened() as model:
        assert model is not None
        marks = await examined(model, ASKING)
        parts = (
            ("find", marks.find, FULL.find),
            ("write", marks.write, FULL.write),
            ("use a tool", marks.tool, FULL.tool),
            ("judge", marks.judge, FULL.judge),
        )
        return [Row(f"exam: {name}", of, None, right / of, *_costs([model.calls])) for name, right, of in parts]


def answers(opened: Opened, data: Path, sample: int) -> list[Row]:
    folder = data / "real-qa-3"
    corpora = sorted(folder.glob("corpus-*.jsonl.gz"))
    figures = eval_answers.run(folder / "questions.jsonl", corpora, embedder(EMBEDDED), opened(), sample)
    return _rows("answers: state what was asked", "states", figures)


async def causes(opened: Opened) -> list[Row]:
    return _rows("causes: stated", "stated", await rca_engines.run(CASES, opened()))


def owners(opened: Opened, data: Path, sample: int) -> list[Row]:
    figures = triage.run(data / "itsm-tickets" / "tickets.jsonl.gz", llm=opened(), sample=sample)
    return _rows("owners: first named", "hop@1", figures)


async def sentences(opened: Opened) -> list[Row]:
    """Return the shares of true and of false sentences about documents that are shown."""
    cases = cases_in(SENTENCES)
    documents = await documents_of({}, cases)
    shown: dict[bool, list[tuple[bool, Sequence[Any]]]] = {True: [], False: []}
    async with opened() as model:
        assert model is not None
        for case, document in zip(cases, documents, strict=True):
            before = len(model.calls)
            sentence = case.says(document)
            evidence = NumberedPassages(dict(enumerate(nearest(sentence, passages_of(document)), start=1)))
            marks = "".join(f"[{number}]" for number in evidence.passages)
            checked = by_rules(claims(f"{sentence} {marks}"), case.question, evidence)
            if checked.kept:
                asking = prompts.write(evidence.shown, case.question)
                writing = type(ASKING)(asking, requester="checker", deadline=ASKING.deadline)
                ends_at = asyncio.get_running_loop().time() + writing.deadline
                written = Written(case.question, evidence, checked.claims, writing, ends_at)
                checked = await by_judge(checked, written, model)
            kept = any(not each.is_quoted for each in checked.kept)
            shown[case.faithful].append((kept, model.calls[before:]))
    return [_checked("answers", faithful, shown[faithful]) for faithful in (True, False)]


async def findings(opened: Opened) -> list[Row]:
    """Return the shares of true and of false findings about outputs of tools that are shown."""
    observations = rca_engines.observed("An alert fires.", ())
    shown: dict[bool, list[tuple[bool, Sequence[Any]]]] = {True: [], False: []}
    async with opened() as model:
        assert model is not None
        for line in FINDINGS.read_text("utf-8").splitlines():
            case = json.loads(line)
            for faithful in (True, False):
                snapshots, before = Snapshots(), len(model.calls)
                for tool, text in case["outputs"].items():
                    snapshots.keep(text, f"{tool}()")
                quote = next(line for text in case["outputs"].values() for line in text.splitlines() if len(line) > 20)
                cause = case["faithful" if faithful else "false"]
                finding = Finding("", cause, "", "", Responsibility.PLATFORM, (quote,))
                checked = await checked_finding(finding, snapshots, observations, model, ASKING)
                kept = checked.finding is not None and checked.finding.root_cause == cause
                shown[faithful].append((kept, model.calls[before:]))
    return [_checked("causes", faithful, shown[faithful]) for faithful in (True, False)]


def _checked(subject: str, faithful: bool, shown: Sequence[tuple[bool, Sequence[Any]]]) -> Row:
    name = f"checker of {subject}: {'true ones shown' if faithful else 'false ones shown'}"
    share = sum(kept for kept, _ in shown) / len(shown)
    return Row(name, len(shown), None, share, *_costs([calls for _, calls in shown if calls]))


def _rows(measure: str, figure: str, figures: Mapping[str, Any]) -> list[Row]:
    results = figures["results"]
    costs = figures.get("calls", 0), figures.get("tokens", 0)
    return [
        Row(
            f"{measure}{' (at its word)' if name == 'model' else ''}",
            figures["cases"],
            results["evidence"][figure],
            results[name][figure],
            *costs,
        )
        for name in ("plumbline", "model")
    ]


def _costs(cases: Sequence[Sequence[Any]]) -> tuple[float, float]:
    """Return the medians of the calls and of the tokens read over cases."""
    totals = [(len(calls), sum(call.prompt_tokens for call in calls)) for calls in cases] or [(0, 0)]
    calls, tokens = (statistics.median(each) for each in zip(*totals, strict=True))
    return calls, tokens


def measured(url: str, data: Path | None, sample: int, record: Path) -> dict[str, Any]:
    """Return the figures of all measures."""

    def opened() -> AbstractAsyncContextManager[RecordedModel | None]:
        return recorded_model(url, record)

    rows = asyncio.run(exam(opened))
    if data is not None:
        rows += answers(opened, data, sample) + owners(opened, data, sample)
    rows += asyncio.run(causes(opened))
    rows += asyncio.run(sentences(opened)) + asyncio.run(findings(opened))
    return {**asyncio.run(about(url)), "rows": [{name: getattr(row, name) for name in Row.__slots__} for row in rows]}


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    heads = ("measure", "cases", "without a model", "with it", "calls a case", "tokens a case")
    rows = [
        (
            row["measure"],
            str(row["cases"]),
            "" if row["without"] is None else f"{row['without']:.2f}",
            f"{row['with_model']:.2f}",
            f"{row['calls']:g}",
            f"{row['tokens']:,.0f}",
        )
        for row in figures["rows"]
    ]
    print_rows(console, heads, rows, f"{figures['model']} · {figures['quantisation']} · {figures['server']}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What Plumbline makes of a language model of yours.")
    parser.add_argument("url", help="address of the server, with or without /v1")
    parser.add_argument("--data", type=Path, help="the folder with real-qa-3 and itsm-tickets, for answers and owners")
    parser.add_argument("--sample", type=int, default=QUESTIONS, help="questions and tickets that are drawn")
    parser.add_argument("--record", type=Path, help="a file for the replies, with which an interrupted run goes on")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory(prefix="plumbline-with-model-") as folder:
        figures = measured(given.url, given.data, given.sample, given.record or Path(folder) / "replies.jsonl")
    print_table(figures, Console(width=140))
    write_json(figures, given.json)
