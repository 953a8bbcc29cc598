"""`python -m tests.benchmarks rca`: measure whether recorded tool outputs lead to the cause, and whether the quotes show it.

Each case has a `question` (or a list of the user's turns, or null for “look at what was found”) and `observations`
(`tool`, `params`, `status`, `output`). `keys` and `evidence_keys` are groups of alternatives: a text is right if it
contains one of every group, ignoring case, white space and the kind of hyphen. `stated` considers the first 60 words of
the stated cause, `evidence@3` the first three quotes of 300 characters each. The figures are those of the gradable
cases of kind `root_cause`; other kinds are listed beside them, and a `healthy` case is right when no cause is named.
Engines see only the question and the observations.

The engines are the evidence engine, a keyword search, a language model, and the product with one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console

from bot.evaluation.report import (
    ASKING,
    DEADLINE,
    NO_MODEL,
    SEED,
    CallCost,
    OpenedModel,
    RecordedModel,
    bootstrap_interval,
    cell,
    costs,
    json_lines,
    paired,
    print_model,
    print_rows,
)
from core.answering.model_exam import examined, skill_of
from core.incidents.folding import open_from
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.errors import MalformedInput
from core.model.findings import Explanation
from core.model_calls.choice import VOUCHED, Skill
from core.model_calls.metered_model import Limits
from core.ports import LanguageModel, TimeWindow, Tool, ToolParameter
from core.rca.cluster.described import time_of
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.rca.observations import Observations
from core.rca.tool_outputs import ToolOutput
from handlers.common.ports import Readers
from handlers.incidents.investigate_with_model import ClaimedExplanation, asks_model, investigate_with_model
from handlers.incidents.investigate_with_model import by_evidence as by_evidence_engine

MAX_WORDS = 60  # of a stated cause
MAX_QUOTES = 3
MAX_QUOTE = 300  # characters
NOT_RECORDED = "not available"
FEW = 40  # recorded values of a parameter up to which no other is allowed
LIMITS = Limits(seconds=DEADLINE)
SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)  # of a case that tells none
NOTHING = ClaimedExplanation(Explanation((), (), (), ()), None)


@dataclass(frozen=True, slots=True)
class Given:
    """The input of an engine."""

    question: str
    outputs: tuple[ToolOutput, ...]


@dataclass(frozen=True, slots=True)
class EngineVerdict:
    """The result of an engine. An empty `cause` means none was found; `steps` is the number of outputs read."""

    cause: str
    quotes: tuple[str, ...]
    steps: int


Engine = Callable[[Given], Awaitable[EngineVerdict]]


def latest_time(outputs: Iterable[ToolOutput]) -> datetime | None:
    """Return the latest time that outputs tell, as far as they tell any with a zone."""
    return max(_times(outputs), default=None)


_ANY_TIME = re.compile(
    r"\b(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d+)?\s?(?:Z|UTC|\+00:00)"
    r"|(?P<long>[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}))"
)


def _times(outputs: Iterable[ToolOutput]) -> Iterator[datetime]:
    for output in outputs:
        for match in _ANY_TIME.finditer(output.text):
            if at := time_of(match["long"] or match["iso"]):
                yield at


async def by_evidence(given: Given) -> EngineVerdict:
    explanation, _ = explain(observed(given.question, given.outputs))
    first = explanation.cause
    quotes = tuple(evidence.quote for evidence in first.evidence) if first else ()
    return EngineVerdict(first.cause if first else "", quotes, len(given.outputs))


def verdict_of(conclusion: ClaimedExplanation, given: Given) -> EngineVerdict:
    """Return the first cause of a conclusion, and its quotes."""
    steps = (
        len(conclusion.explanation.trajectory.steps)
        if conclusion.explanation.trajectory is not None
        else len(given.outputs)
    )
    first = conclusion.explanation.cause
    return (
        EngineVerdict(first.cause, tuple(each.quote for each in first.evidence), steps)
        if first
        else EngineVerdict("", (), steps)
    )


async def by_each(
    question: str, outputs: Sequence[ToolOutput], services: Sequence[str], model: LanguageModel, skill: Skill | None
) -> Mapping[str, ClaimedExplanation]:
    """Return the conclusions of a model: `model` with nothing but its tools, and `plumbline`, which is what people read.

    Its tools return the recorded outputs. `plumbline` asks a model of this skill where the evidence is not strong, and
    merges what it finds with the causes of the evidence engine; None: the model is not used. `services` are the possible
    places of a cause; if there are none, any text is.
    """
    observations = observed(question, outputs, services)
    by_rules = by_evidence_engine(*explain(observations))

    async def investigated(before: ClaimedExplanation, trusted: Skill) -> ClaimedExplanation:
        return await investigate_with_model(
            before,
            observations,
            survey(observations),
            model=model,
            skill=trusted,
            progress=_ignore,
            limits=LIMITS,
            readers=Readers(toolboxes=[RecordedTools(outputs)]),
        )

    is_asked = skill is not None and asks_model(skill, by_rules)
    return {
        "model": await investigated(NOTHING, VOUCHED),
        "plumbline": await investigated(by_rules, skill) if skill is not None and is_asked else by_rules,
    }


def observed(question: str, outputs: Sequence[ToolOutput], services: Sequence[str] = ()) -> Observations:
    """Return recorded outputs as the observations of an incident that is as late as the latest time that they tell."""
    at = latest_time(outputs) or SOME_TIME
    alert = Alert("recorded", question, AlertStatus.FIRING, Severity.WARNING, at, summary=question)
    delivery = AlertDelivery("recorded", "recorded", "recorded", (alert,), at)
    incident = open_from(delivery, "recorded", Place(Platform.CONSOLE, "incidents"))
    return Observations(incident, at, tuple(services), (), (), (), {}, outputs=tuple(outputs))


async def _ignore(_: str) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class RecordedTool:
    """A tool with the recorded outputs of its calls. An empty argument is one that the call does not have."""

    name: str
    outputs: tuple[ToolOutput, ...]

    @property
    def description(self) -> str:
        return f"The output of {self.name} at the time of the incident. An argument that is not needed is empty."

    @property
    def parameters(self) -> tuple[ToolParameter, ...]:
        names = dict.fromkeys(name for output in self.outputs for name in output.arguments)
        return tuple(self._parameter(name) for name in names)

    def _parameter(self, name: str) -> ToolParameter:
        values = tuple(dict.fromkeys(output.arguments.get(name, "") for output in self.outputs))
        description = name.replace("_", " ")
        return (
            ToolParameter(name, description, values)
            if len(values) <= FEW
            else ToolParameter(name, f"{description}, or nothing")
        )

    async def call(self, arguments: Mapping[str, str]) -> str:
        given = _given(arguments)
        output = next((each for each in self.outputs if _given(each.arguments) == given), None)
        return NOT_RECORDED if output is None else output.text or ("The call failed." if output.failed else "")


def _given(arguments: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in arguments.items() if value}


@dataclass(frozen=True, slots=True)
class RecordedTools:
    """Implements `core.ports.Toolbox` over recorded outputs."""

    outputs: Sequence[ToolOutput]
    name: str = "recorded"

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        names = dict.fromkeys(output.tool for output in self.outputs)
        return [RecordedTool(name, tuple(each for each in self.outputs if each.tool == name)) for name in names]


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
            f"{path} has a case that is not in the format that `tests/benchmarks/rca_engines.py` describes: {error!r}."
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
