"""Measure whether the culprit change, or none, is named first, and whether badges are calibrated.

`DIR/*/` contains one incident each: `alert.json` (an Alertmanager webhook), `changes.jsonl`, `logs/`, `metrics/` and
`traces/` in the formats of the file tools, and optionally `dependencies.json` (caller → called services). `truth.json`
contains `class`, `culprits` (every id of the change; empty if no change is the cause), `decoys` (ids of innocent
changes), `first_failing` (a service), and optionally `onset` (the time of the first symptom) and `developed_on`
(whether the class was used for development). The product's investigation reads everything but the truth, as of five
minutes after the alert.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, cast

import numpy as np
from rich.console import Console

from adapters.alerts.alertmanager import parse
from adapters.tools.files import ChangeFiles, LogFiles, MetricFiles, TraceFiles
from bot.evaluation.report import (
    ASKING,
    DEADLINE,
    SEED,
    CallCost,
    RecordedModel,
    bootstrap_interval,
    cell,
    costs,
    paired,
    print_model,
    print_rows,
)
from core.answering.model_exam import Marks, examined, skill_of
from core.confidence.calibrator import PROBABLE, badge_for
from core.confidence.measures import auroc, ece
from core.incidents.folding import open_from
from core.model.badge import Evaluation, Strength
from core.model.conversation import Place, Platform
from core.model.errors import MalformedInput
from core.model.findings import Explanation
from core.model.incident import Incident
from core.model_calls.choice import VOUCHED, Skill
from core.model_calls.metered_model import Limits
from core.rca.agent.conclusion import situation
from core.rca.explain import explain
from core.rca.incident_signals import LEEWAY, survey
from core.rca.observation_tools import EVERY_SERVICE, LIST_CHANGES, READ_LOGS
from core.rca.observations import Observations
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers
from handlers.incidents.investigate_with_model import asks_model, by_evidence, investigate_with_model
from handlers.incidents.observe_incident import observe_incident
from tests.benchmarks.asked_model import AskedModel
from tests.benchmarks.simulated_agent import Cause
from tests.evaluation.generate_incidents import generate

INVESTIGATED_AFTER = timedelta(minutes=5)  # after the alert
AMONG = 3
COMPLAINS = re.compile(r" times, (?:WARN|ERROR|CRITICAL|FATAL)")  # a log message as the agent reads it
LIMITS = Limits(seconds=DEADLINE)


@dataclass(frozen=True, slots=True)
class Truth:
    """The ground truth of a case."""

    kind: str
    culprits: frozenset[str]
    decoys: frozenset[str]
    first_failing: str
    developed_on: bool
    onset: datetime | None


@dataclass(frozen=True, slots=True)
class Graded:
    """The result of a case. `probability` is that of the first cause, None if none was named."""

    truth: Truth
    first: bool
    among: bool
    decoy: bool
    service: bool
    probability: float | None
    strong: bool  # the badge is strong
    late: bool  # the first cause is a change that took effect after the onset
    seconds: float


@dataclass(frozen=True, slots=True)
class _At:
    """A clock that stands still."""

    at: datetime

    def now(self) -> datetime:
        return self.at


def run(folder: Path, without: Sequence[str] = (), llm: AskedModel = AskedModel()) -> dict[str, Any]:
    """Return the figures; with a language model, those of `evidence`, `model` and `plumbline` too, paired.

    `without` names the inputs to leave out (see ABLATIONS). `model` asks the model about each incident, as one
    that the operator trusts; `plumbline` is the product, which asks it only where the evidence is not strong, weighs what it
    finds by its exam, and does not ask a model that failed the exam. Raises MalformedInput for an invalid folder.
    """
    cases = sorted(path.parent for path in folder.glob("*/truth.json"))
    if not cases:
        raise MalformedInput(f"There is no case in {folder}: expected {folder.name}/NAME/truth.json.")
    return asyncio.run(_measured(cases, without, llm))


async def _measured(cases: Sequence[Path], without: Sequence[str], llm: AskedModel) -> dict[str, Any]:
    rows: dict[str, list[Graded]] = {"plumbline": []}
    about: dict[str, Any] = {"engine": "evidence"}
    causes: list[Cause] = []
    async with llm.opened(causes=causes) as model:
        marks = await examined(model, ASKING) if model is not None else Marks(0, 0, 0)
        calls: list[list[CallCost]] = []
        for case in cases:
            truth, observations = await observed(case)
            for name in without:
                observations = ABLATIONS[name](observations)
            if model is None:
                rows["plumbline"].append(graded(truth, observations))
                continue
            causes[:] = [_simulated(truth, observations)]
            before = len(model.calls)
            for name, one in (await _by_each(truth, observations, model, skill_of(marks))).items():
                rows.setdefault(name, []).append(one)
            if len(model.calls) > before:
                calls.append(model.calls[before:])
    if model is not None:
        about = {
            "engine": model.name,
            "model": model.name,
            "exam": str(marks),
            **costs(calls),
            "paired": {
                name: paired(
                    (ours.first, theirs.first) for ours, theirs in zip(rows[name], rows["evidence"], strict=True)
                )
                for name in ("model", "plumbline")
            },
            "results": {name: _figures(_headline(judgements)) for name, judgements in rows.items()},
        }
    judgements = rows["plumbline"]
    return {
        "measure": "incidents",
        **about,
        "seed": SEED,
        "cases": len(_headline(judgements)),
        **_figures(_headline(judgements)),
        "without": list(without),
        "developed_on": _figures([each for each in judgements if each.truth.developed_on]),
        "by_class": {
            kind: _figures([each for each in judgements if each.truth.kind == kind])
            for kind in sorted({each.truth.kind for each in judgements})
        },
    }


def _headline(graded: Sequence[Graded]) -> Sequence[Graded]:
    """Return the cases of classes that were not developed on; all of them if there are none."""
    return [each for each in graded if not each.truth.developed_on] or graded


async def _by_each(
    truth: Truth, observations: Observations, model: RecordedModel, skill: Skill | None
) -> dict[str, Graded]:
    began = perf_counter()
    by_rules = by_evidence(*explain(observations))
    evaluation = by_rules.first[1] if by_rules.first is not None else None
    evidence = judged(truth, by_rules.explanation, evaluation, perf_counter() - began)
    rows = {"evidence": evidence, "model": evidence, "plumbline": evidence}
    for name, used in (("model", VOUCHED), ("plumbline", skill)):
        if used is not None and asks_model(used, by_rules):
            conclusion = await investigate_with_model(
                by_rules, observations, survey(observations), model=model, skill=used, progress=_ignore, limits=LIMITS
            )
            claim = conclusion.first[1] if conclusion.first is not None else None
            rows[name] = judged(truth, conclusion.explanation, claim, perf_counter() - began)
    return rows


def _simulated(truth: Truth, observations: Observations) -> Cause:
    """Return what a simulated model knows of an incident, and how it recognises that in what it reads."""
    touched = [name for each in observations.changes if each.id in truth.culprits for name in each.touched]
    service = next((name for name in (*touched, truth.first_failing) if name), observations.incident.service)

    def shows(line: str) -> bool:
        return any(each in line for each in truth.culprits) if truth.culprits else COMPLAINS.search(line) is not None

    tool = LIST_CHANGES if truth.culprits else READ_LOGS
    calls = [{"tool": tool, "service": each} for each in (service, EVERY_SERVICE)]
    return Cause(situation(observations), service, truth.culprits, shows, calls=calls)


async def _ignore(_: str) -> None:
    """Show no progress."""


@contextmanager
def invented(count: int, seed: int) -> Generator[Path]:
    """Write invented incidents to a folder that is removed afterwards."""
    with TemporaryDirectory() as folder:
        generate(Path(folder), count, seed)
        yield Path(folder)


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    keys = (
        "cases",
        "first",
        "among3",
        "decoy_first",
        "none_recognised",
        "first_failing_service",
        "auroc",
        "ece",
        "strong",
        "strong_right",
    )
    results = figures.get("results", {})
    rows = {"not developed on": figures, **results, "developed on": figures["developed_on"], **figures["by_class"]}
    title = f"{figures['cases']} incidents of classes that were not developed on"
    print_rows(console, ("", *keys), [(name, *(cell(row, key) for key in keys)) for name, row in rows.items()], title)
    print_model(figures, console)


def _figures(graded: Sequence[Graded]) -> dict[str, Any]:
    if not graded:
        return {"cases": 0}
    none = [each for each in graded if not each.truth.culprits]
    named = [each for each in graded if each.probability is not None]
    sure = np.array([each.probability for each in named], float)
    right = np.array([each.first for each in named], float)
    mixed = 0 < right.sum() < len(right)
    return {
        "cases": len(graded),
        "first": _mean([each.first for each in graded]),
        "first_ci": bootstrap_interval([float(each.first) for each in graded]),
        "among3": _mean([each.among for each in graded]),
        "decoy_first": _mean([each.decoy for each in graded]),
        "none_recognised": _mean([each.first for each in none]) if none else None,
        "first_failing_service": _mean([each.service for each in graded]),
        "auroc": round(float(auroc(sure, right)), 4) if mixed else None,
        "ece": round(float(ece(sure, right)), 4) if named else None,
        "strong": round(sum(each.strong for each in graded) / len(graded), 4),
        "strong_right": _mean([each.first for each in graded if each.strong])
        if any(each.strong for each in graded)
        else None,
        "named": round(len(named) / len(graded), 4),
        "after_first_sign": sum(each.late for each in graded),
        "case_seconds_mean": round(float(np.mean([each.seconds for each in graded])), 4),
    }


def _mean(values: Sequence[bool]) -> float:
    return round(float(np.mean(values)), 4)


async def observed(case: Path) -> tuple[Truth, Observations]:
    """Return the truth of a case, and the observations of the investigation."""
    truth, incident = _truth(case / "truth.json"), _alerted(case)
    clock = _At(incident.started_at + INVESTIGATED_AFTER)
    return truth, await observe_incident(incident, _readers(case), history=IncidentHistory([]), clock=clock)


def graded(truth: Truth, observations: Observations) -> Graded:
    """Return the result of an investigation of the observations."""
    began = perf_counter()
    explanation, evaluation = explain(observations)
    return judged(truth, explanation, evaluation, perf_counter() - began)


def judged(truth: Truth, explanation: Explanation, evaluation: Evaluation | None, seconds: float) -> Graded:
    """Return the result of an explanation, compared with the truth."""
    named = [frozenset({each.change.id} if each.change else ()) for each in explanation.hypotheses]
    right = [bool(one & truth.culprits) if truth.culprits else not one for one in named]
    return Graded(
        truth=truth,
        first=right[:1] == [True],
        among=any(right[:AMONG]),
        decoy=bool(named and named[0] & truth.decoys),
        service=explanation.first_failing == truth.first_failing,
        probability=evaluation.rce if evaluation else None,
        strong=badge_for(evaluation, None, scale=PROBABLE).strength is Strength.STRONG if evaluation else False,
        late=_is_late(explanation, truth),
        seconds=seconds,
    )


def _is_late(explanation: Explanation, truth: Truth) -> bool:
    change = explanation.cause.change if explanation.cause else None
    return change is not None and truth.onset is not None and change.at > truth.onset + LEEWAY


def _readers(case: Path) -> Readers:
    written = case / "dependencies.json"
    dependencies = cast("dict[str, list[str]]", json.loads(written.read_text("utf-8")) if written.exists() else {})
    return Readers(
        [LogFiles("logs", case)],
        [MetricFiles("metrics", case)],
        [ChangeFiles("changes", case)],
        {caller: tuple(callees) for caller, callees in dependencies.items()},
        graphs=[TraceFiles("traces", case / "traces")],
    )


def _alerted(case: Path) -> Incident:
    body = (case / "alert.json").read_bytes()
    try:
        began = datetime.fromisoformat(json.loads(body)["alerts"][0]["startsAt"])
        delivery = parse(body, began + timedelta(seconds=5))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise MalformedInput(f"{case / 'alert.json'} is not an Alertmanager webhook: {error!r}.") from error
    return open_from(delivery, case.name, Place(Platform.CONSOLE, "incidents"))


def _truth(path: Path) -> Truth:
    try:
        truth = json.loads(path.read_text("utf-8"))
        return Truth(
            truth["class"],
            frozenset(truth["culprits"]),
            frozenset(truth["decoys"]),
            truth["first_failing"],
            bool(truth.get("developed_on", False)),
            datetime.fromisoformat(truth["onset"]) if "onset" in truth else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedInput(
            f"{path} is not in the format that `tests/benchmarks/incidents.py` describes: {error!r}."
        ) from error


def _changed(seen: Observations, **fields: Any) -> Observations:
    return replace(seen, changes=tuple(replace(change, **fields) for change in seen.changes))


ABLATIONS: Mapping[str, Callable[[Observations], Observations]] = {
    "diffs": lambda seen: _changed(seen, diff=""),
    "paths": lambda seen: _changed(seen, files=()),
    "messages": lambda seen: _changed(seen, title="", detail=""),
    "metrics": lambda seen: replace(seen, series=()),
    "graph": lambda seen: replace(seen, dependencies={}),
    "logs": lambda seen: replace(seen, logs=()),
}
"""Inputs that can be left out, to measure their value."""
