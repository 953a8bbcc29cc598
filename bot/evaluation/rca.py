"""`plumbline eval rca`: measure whether recorded tool outputs lead to the cause, and whether the quotes show it.

Each case has a `question` (or a list of the user's turns, or null for “look at what was found”) and `observations`
(`tool`, `params`, `status`, `output`). `keys` and `evidence_keys` are groups of alternatives: a text is right if it
contains one of every group, ignoring case, white space and the kind of hyphen. `stated` considers the first 60 words of
the stated cause, `evidence@3` the first three quotes of 300 characters each. The figures are those of the gradable
cases of kind `root_cause`; other kinds are listed beside them, and a `healthy` case is right when no cause is named.
Engines see only the question and the observations.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console

from bot.evaluation.rca_engines import (
    MAX_QUOTE,
    MAX_QUOTES,
    MAX_WORDS,
    Engine,
    EngineVerdict,
    Given,
    by_each,
    by_evidence,
    verdict_of,
)
from bot.evaluation.recorded_model import (
    ASKING,
    NO_MODEL,
    CallCost,
    OpenedModel,
    RecordedModel,
    costs,
    paired,
    print_model,
)
from bot.evaluation.report import SEED, bootstrap_interval, cell, json_lines, print_rows
from core.answering.model_exam import examined, skill_of
from core.model.errors import MalformedInput
from core.model_calls.choice import Skill
from core.rca.tool_outputs.clues import ToolOutput

HEADLINE = "root_cause"
HEALTHY = "healthy"
FIELDS = ("question", "observations", "kind", "gradable", "keys", "evidence_keys")
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")

Keys = tuple[tuple[str, ...], ...]  # groups, of each of which one alternative is needed


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """The input of an engine, and the expected result."""

    given: Given
    kind: str
    keys: Keys
    evidence_keys: Keys


@dataclass(frozen=True, slots=True)
class Graded:
    """The result of one engine in one case."""

    kind: str
    stated: float
    evidence: float
    abstained: float
    steps: int
    seconds: float


async def run(
    path: Path, llm: OpenedModel = NO_MODEL, on_case: Callable[[int, RecordedCase], None] = lambda _number, _case: None
) -> dict[str, Any]:
    """Return the figures of the evidence engine; with a language model, those of `model` and `plumbline` too (see `by_each`).

    `on_case` gets the number and the case that the model is asked about next. Raises MalformedInput for an invalid file.
    """
    cases = cases_of(path)
    by_engine = {"evidence": [await graded(by_evidence, case) for case in cases]}
    engine, about = "evidence", dict[str, Any]()
    async with llm as model:
        if model is not None:
            engine = "plumbline"
            marks = await examined(model, ASKING)
            calls: list[Sequence[CallCost]] = []
            for number, case in enumerate(cases):
                on_case(number, case)
                before = len(model.calls)
                for name, one in (await _by_each(case, model, skill_of(marks))).items():
                    by_engine.setdefault(name, []).append(one)
                calls.append(model.calls[before:])
            about = {
                "model": model.name,
                "exam": str(marks),
                **costs(calls),
                "paired": {name: _paired(by_engine[name], by_engine["evidence"]) for name in ("model", "plumbline")},
            }
    results = {name: figures_of(each) for name, each in by_engine.items()}
    return {
        "measure": "rca",
        "engine": engine,
        "seed": SEED,
        **{key: value for key, value in results[engine].items() if key != "by_kind"},
        **about,
        "results": results,
    }


async def _by_each(case: RecordedCase, model: RecordedModel, skill: Skill | None) -> dict[str, Graded]:
    started = time.perf_counter()
    conclusions = await by_each(case.given.question, case.given.outputs, (), model, skill)
    seconds = time.perf_counter() - started
    return {name: _graded(case, verdict_of(each, case.given), seconds) for name, each in conclusions.items()}


def _paired(model: Sequence[Graded], evidence: Sequence[Graded]) -> dict[str, int]:
    pairs = [pair for pair in zip(model, evidence, strict=True) if pair[0].kind == HEADLINE]
    return paired((bool(ours.stated), bool(theirs.stated)) for ours, theirs in pairs)


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    keys = ("stated", "evidence@3", "abstained", "steps_mean")
    rows = [(name, *(cell(row, key, ".3f") for key in keys)) for name, row in figures["results"].items()]
    print_rows(console, ("engine", *keys), rows, f"{figures['cases']} root causes")
    for name, row in figures["results"].items():
        for kind, one in row["by_kind"].items():
            shares = ", ".join(f"{key} {value:.2f}" for key, value in one.items() if key != "cases")
            console.print(f"{name}, {one['cases']} of kind {kind}: {shares}")
    print_model(figures, console)


def holds(text: str, keys: Keys) -> bool:
    """Return whether a text contains one alternative of every group."""
    searched = normalised(text)
    return all(any(normalised(alternative) in searched for alternative in group) for group in keys)


def normalised(text: str) -> str:
    """Return a text as keys are compared with it."""
    return " ".join(_HYPHENS.sub("-", text).casefold().split())


async def graded(engine: Engine, case: RecordedCase) -> Graded:
    """Return the result of an engine in a case."""
    started = time.perf_counter()
    verdict = await engine(case.given)
    return _graded(case, verdict, time.perf_counter() - started)


def _graded(case: RecordedCase, verdict: EngineVerdict, seconds: float) -> Graded:
    cause = " ".join(verdict.cause.split()[:MAX_WORDS])
    quotes = [quote[:MAX_QUOTE] for quote in verdict.quotes[:MAX_QUOTES]]
    right = not cause if case.kind == HEALTHY else holds(cause, case.keys)
    return Graded(
        kind=case.kind,
        stated=float(right),
        evidence=float(holds("\n".join(quotes), case.evidence_keys)),
        abstained=float(not cause),
        steps=verdict.steps,
        seconds=seconds,
    )


def figures_of(graded: Sequence[Graded]) -> dict[str, Any]:
    headline = [each for each in graded if each.kind == HEADLINE]
    kinds = sorted({each.kind for each in graded} - {HEADLINE})
    return {
        "cases": len(headline),
        "stated": _mean([each.stated for each in headline]),
        "stated_ci": bootstrap_interval([each.stated for each in headline]),
        "evidence@3": _mean([each.evidence for each in headline]),
        "evidence@3_ci": bootstrap_interval([each.evidence for each in headline]),
        "abstained": _mean([each.abstained for each in headline]),
        "steps_mean": _mean([each.steps for each in headline]),
        "case_seconds_mean": _mean([each.seconds for each in graded]),
        "case_seconds_max": round(max(each.seconds for each in graded), 4),
        "by_kind": {kind: _of_kind(kind, [each for each in graded if each.kind == kind]) for kind in kinds},
    }


def _of_kind(kind: str, graded: Sequence[Graded]) -> dict[str, float]:
    figures: dict[str, float] = {"cases": len(graded), "abstained": _mean([each.abstained for each in graded])}
    if kind == HEALTHY:
        return figures | {"right": _mean([each.stated for each in graded])}
    return figures | {
        "stated": _mean([each.stated for each in graded]),
        "evidence@3": _mean([each.evidence for each in graded]),
    }


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


def cases_of(path: Path) -> list[RecordedCase]:
    """Return the gradable cases of a file, at least one of them a root cause. Raises MalformedInput."""
    rows = cast("list[dict[str, Any]]", json_lines(path, *FIELDS))
    try:
        cases = [_case(row) for row in rows if row["gradable"]]
    except (AttributeError, KeyError, TypeError) as error:
        raise MalformedInput(
            f"{path} has a case that is not in the format that `bot/evaluation/rca.py` describes: {error!r}."
        ) from error
    if not any(case.kind == HEADLINE for case in cases):
        raise MalformedInput(f"{path} has no gradable case of kind {HEADLINE}.")
    return cases


def _case(row: Mapping[str, Any]) -> RecordedCase:
    outputs = tuple(
        ToolOutput(
            tool=each["tool"],
            arguments=_arguments(each["params"]),
            text=each["output"] or "",
            failed=each["status"] == "error",
        )
        for each in row["observations"]
    )
    keys, evidence_keys = (tuple(tuple(group) for group in row[name] or ()) for name in ("keys", "evidence_keys"))
    return RecordedCase(Given(_question(row["question"]), outputs), row["kind"], keys, evidence_keys)


def _question(question: Any) -> str:
    """Return the question, empty if there is none. Several turns are joined by line breaks."""
    return (
        question if isinstance(question, str) else "\n".join(str(turn) for turn in cast("list[object]", question or []))
    )


def _arguments(params: Any) -> dict[str, str]:
    arguments = cast("Mapping[str, object]", params or {})
    return {name: str(value) for name, value in arguments.items() if value is not None}
