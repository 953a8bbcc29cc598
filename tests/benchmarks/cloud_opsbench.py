"""Snapshots of Kubernetes (LLM4Ops/Cloud-OpsBench): are the object and the type of a fault named?

Each case has a `query`, `outputs` (`tool`, `arguments`, `text`), and what is to be found: `fault_object` and `root_cause`,
a type from a closed list. A diagnosis is right if both are, at 1 and among 3. The plan is fixed: every recorded output is
read. A language model calls the recorded tools instead, and finally says which type of the list its cause is. `auroc`
says how well the score of the first diagnosis tells right ones from wrong ones; the score of no diagnosis is 0.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console

from bot.evaluation.report import (
    ASKING,
    SEED,
    CallCost,
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
from core.confidence.measures import auroc
from core.model.errors import InvalidReply, MalformedInput, ModelUnavailable
from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import structured
from core.model_calls.prompts import quoted
from core.ports import LanguageModel
from core.rca.agent.conclusion import situation
from core.rca.agent.experts import MIN_QUOTE
from core.rca.cause_candidates import cause_candidates
from core.rca.cluster.faults import ObjectFault
from core.rca.explain import MIN_SCORE
from core.rca.incident_signals import survey
from core.rca.tool_outputs import ToolOutput
from handlers.incidents.investigate_with_model import ClaimedExplanation
from tests.benchmarks.asked_model import AskedModel
from tests.benchmarks.rca_engines import by_each, observed
from tests.benchmarks.simulated_agent import Cause, FaultType, calls_of

FIELDS = ("query", "outputs", "root_cause", "fault_object")
AMONG = 3
TYPE_TOKENS = 60  # room for the longest type

TYPES: Mapping[str, str] = {
    "QUOTA_CPU": "namespace_cpu_quota_exceeded",
    "QUOTA_MEMORY": "namespace_memory_quota_exceeded",
    "QUOTA_PODS": "namespace_pod_quota_exceeded",
    "QUOTA_SERVICES": "namespace_service_quota_exceeded",
    "QUOTA_STORAGE": "namespace_storage_quota_exceeded",
    "ACCOUNT": "missing_service_account",
    "MEMORY": "oom_killed",
    "CPU_CAPACITY": "cpu_capacity_mismatch",
    "MEMORY_CAPACITY": "memory_capacity_mismatch",
    "AFFINITY": "node_affinity_mismatch",
    "NODE_SELECTOR": "node_selector_mismatch",
    "ANTI_AFFINITY": "pod_anti_affinity_conflict",
    "CORDON": "node_cordon_mismatch",
    "TAINT": "taint_toleration_mismatch",
    "VOLUME_TAKEN": "pv_binding_occupied",
    "VOLUME_MODE": "pvc_access_mode_mismatch",
    "VOLUME_SIZE": "pvc_capacity_mismatch",
    "VOLUME_LABELS": "pvc_selector_mismatch",
    "VOLUME_CLASS": "pvc_storage_class_mismatch",
    "ENVIRONMENT": "service_env_var_address_mismatch",
    "TARGET_PORT": "service_port_mapping_mismatch",
    "PROTOCOL": "service_protocol_mismatch",
    "SELECTOR": "service_selector_mismatch",
    "NO_REPLICAS": "deployment_zero_replicas",
    "IMAGE_HOST": "image_registry_dns_failure",
    "IMAGE": "incorrect_image_reference",
    "IMAGE_LOGIN": "missing_image_pull_secret",
    "MOUNT": "volume_mount_permission_denied",
    "CONFIGURATION": "missing_secret_binding",
    "DNS": "service_dns_resolution_failure",
    "ROUTE": "gateway_misroute",
    "PORT_TAKEN": "service_sidecar_port_conflict",
    "CREDENTIALS": "mysql_invalid_credentials",
    "DATABASE_PORT": "mysql_invalid_port",
    "CONNECTIONS": "db_connection_exhaustion",
    "READ_ONLY": "db_read_only",
    "BUSY": "pod_cpu_overload",
}
"""The types of the closed list by our own, where one has one name; probes, daemons and networks are named by their parts."""


DAEMONS = ("containerd", "kubelet", "kube_proxy", "kube_scheduler")
PROBES = ("liveness", "readiness")
CLOSED_LIST = tuple(
    sorted(
        {
            *TYPES.values(),
            *(f"{each}_unavailable" for each in DAEMONS),
            *(f"{each}_probe_incorrect_{what}" for each in PROBES for what in ("port", "protocol", "timing")),
            *(f"{each}_network_{what}" for each in ("pod", "node") for what in ("delay", "packet_loss")),
        }
    )
)
"""The types of both systems of the benchmark."""
PLACES = {"app_name": "app", "node_name": "node", "namespace": "namespace"}
"""The kinds of objects by the arguments that name them."""


def type_of(finding: ObjectFault) -> str:
    """Return the type of the closed list for a finding; empty if the list has none."""
    if finding.fault.id == "DAEMON":
        return f"{finding.detail.replace('-', '_')}_unavailable"
    if finding.fault.id in ("PROBE_PORT", "PROBE_PROTOCOL", "PROBE_TIMING"):
        return f"{finding.detail}_probe_incorrect_{finding.fault.id.removeprefix('PROBE_').lower()}"
    if finding.fault.id in ("DELAY", "LOSS"):
        what = "delay" if finding.fault.id == "DELAY" else "packet_loss"
        return f"{'node' if finding.kind == 'node' else 'pod'}_network_{what}"
    return TYPES.get(finding.fault.id, "")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A fault type and its object (`app/name`, `node/name` or `namespace/name`), with a score in [0, 1]."""

    fault: str
    object: str
    score: float


@dataclass(frozen=True, slots=True)
class Case:
    query: str
    outputs: tuple[ToolOutput, ...]
    fault: str
    object: str


@dataclass(frozen=True, slots=True)
class Graded:
    """The rank of the right diagnosis, from 1; 0 if it was not found. `said` is the first one."""

    case: Case
    said: Diagnosis | None
    rank: int
    seconds: float


def by_evidence(query: str, outputs: Sequence[ToolOutput]) -> list[Diagnosis]:
    """Return the causes that the engine ranks, the likeliest first; one that is no fault of an object has no type."""
    observations = observed(query, outputs)
    ranked = [each for each in cause_candidates(survey(observations), observations) if each.score > 0]
    if not ranked or ranked[0].score < MIN_SCORE:
        return []
    return [
        Diagnosis(type_of(each.fault), f"{each.fault.kind}/{each.fault.name}", each.score)
        if each.fault
        else Diagnosis("", "", each.score)
        for each in ranked
    ]


async def run(path: Path, llm: AskedModel = AskedModel(), sample: int = 0) -> dict[str, Any]:
    """Return the figures of the evidence engine; with a language model, those of `model` and `plumbline` too (see `by_each`).

    `sample` cases are drawn; 0: all. Raises MalformedInput for an invalid file.
    """
    cases = cases_of(path)
    if 0 < sample < len(cases):
        cases = random.Random(SEED).sample(cases, sample)
    graded_by: dict[str, list[Graded]] = {"evidence": []}
    for case in cases:
        started = time.perf_counter()
        diagnoses = by_evidence(case.query, case.outputs)
        graded_by["evidence"].append(_graded(case, diagnoses, time.perf_counter() - started))
    causes: list[Cause] = []
    async with llm.opened(causes=causes) as model:
        about = await _add_model(cases, graded_by, model, causes) if model is not None else {}
    results = {name: _figures(each) for name, each in graded_by.items()}
    engine = next(reversed(results))
    return {"measure": "rca_clusters", "engine": engine, "seed": SEED, **results[engine], **about, "results": results}


async def _add_model(
    cases: Sequence[Case], graded_by: dict[str, list[Graded]], model: RecordedModel, causes: list[Cause]
) -> dict[str, Any]:
    """Add the results with a model to `graded_by`, and return what it took. `causes` is what a simulated model knows."""
    marks = await examined(model, ASKING)
    calls: list[Sequence[CallCost]] = []
    for number, case in enumerate(cases):
        causes[:] = [_simulated(case, number)]
        before, started = len(model.calls), time.perf_counter()
        concluded = await by_each(case.query, case.outputs, places(case.outputs), model, skill_of(marks))
        for name, each in concluded.items():
            diagnoses = await _diagnoses(each, case, model)
            graded_by.setdefault(name, []).append(_graded(case, diagnoses, time.perf_counter() - started))
        calls.append(model.calls[before:])
    return {
        "model": model.name,
        "exam": str(marks),
        **costs(calls),
        "paired": {
            name: paired(
                (one.rank == 1, other.rank == 1)
                for one, other in zip(graded_by[name], graded_by["evidence"], strict=True)
            )
            for name in ("model", "plumbline")
        },
    }


def places(outputs: Sequence[ToolOutput]) -> tuple[str, ...]:
    """Return the objects that tools were asked about, in which a fault can be."""
    return tuple(
        dict.fromkeys(
            f"{kind}/{output.arguments[name]}"
            for name, kind in PLACES.items()
            for output in outputs
            if output.arguments.get(name)
        )
    )


async def _diagnoses(conclusion: ClaimedExplanation, case: Case, model: LanguageModel) -> list[Diagnosis]:
    """Return the diagnoses of a conclusion, best first: the model's own, whose type it names, and the evidence engine's."""
    diagnoses: list[Diagnosis] = []
    for each in conclusion.explanation.hypotheses:
        if each.found_by:
            diagnoses.append(Diagnosis(await _type_by_model(each.cause, model), each.service, each.score))
        else:
            diagnoses += by_evidence(case.query, case.outputs)
    return diagnoses


async def _type_by_model(cause: str, model: LanguageModel) -> str:
    """Return the type of the closed list that a model says its cause is; empty if it says none."""
    prompt = (
        f"Somebody looked into a Kubernetes cluster in trouble and found this cause:\n=====\n{quoted(cause)}\n=====\n"
        f'Reply with one JSON object: "type" is which of these faults that is: {", ".join(CLOSED_LIST)}.'
    )
    request = replace(ASKING, messages=(ChatMessage(Role.USER, prompt),), max_tokens=TYPE_TOKENS)
    try:
        return (await structured(model, request, FaultType, {"type": CLOSED_LIST})).type
    except (InvalidReply, ModelUnavailable):
        return ""


def _simulated(case: Case, number: int) -> Cause:
    """Return what a simulated model knows of a case. Any line that names the object in trouble shows the cause."""
    name = case.object.rpartition("/")[2]

    def shows(line: str) -> bool:
        return name in line and len(line) >= MIN_QUOTE

    return Cause(
        situation(observed(case.query, case.outputs)),
        case.object,
        frozenset(),
        shows,
        f"{case.fault.replace('_', ' ')} at {name}",
        calls=calls_of((each for each in case.outputs if name in each.arguments.values()), shows),
        case=str(number),
        fault=case.fault,
    )


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    keys = ("object_type@1", "object_type@3", "object@1", "type@1", "auroc", "abstained", "seconds_p95")
    rows = [(name, *(cell(row, key, ".3f") for key in keys)) for name, row in figures["results"].items()]
    print_rows(console, ("engine", *keys), rows, f"{figures['cases']} snapshots of clusters")
    types = [
        (fault, str(one["cases"]), cell(one, "object_type@1"), cell(one, "object_type@3"), one["said"])
        for fault, one in figures["by_type"].items()
    ]
    print_rows(console, ("type", "cases", "@1", "@3", "said instead"), types)
    print_model(figures, console)


def _graded(case: Case, diagnoses: Iterable[Diagnosis], seconds: float) -> Graded:
    among = list(dict.fromkeys(diagnoses))[:AMONG]
    ranks = [place for place, each in enumerate(among, 1) if (each.fault, each.object) == (case.fault, case.object)]
    return Graded(case, among[0] if among else None, min(ranks, default=0), seconds)


def _figures(graded: Sequence[Graded]) -> dict[str, Any]:
    first = [float(each.rank == 1) for each in graded]
    scores = np.asarray([each.said.score if each.said else 0.0 for each in graded])
    area = auroc(scores, np.asarray(first))
    by_type: dict[str, list[Graded]] = {}
    for each in graded:
        by_type.setdefault(each.case.fault, []).append(each)
    return {
        "cases": len(graded),
        "object_type@1": _mean(first),
        "object_type@1_ci": bootstrap_interval(first),
        "object_type@3": _mean([each.rank > 0 for each in graded]),
        "object@1": _mean([each.said is not None and each.said.object == each.case.object for each in graded]),
        "type@1": _mean([each.said is not None and each.said.fault == each.case.fault for each in graded]),
        "auroc": None if np.isnan(area) else round(area, 4),
        "abstained": _mean([each.said is None for each in graded]),
        "seconds_p95": round(float(np.quantile([each.seconds for each in graded], 0.95)), 4),
        "by_type": {fault: _of_type(each) for fault, each in sorted(by_type.items())},
    }


def _of_type(graded: Sequence[Graded]) -> dict[str, Any]:
    wrong = [f"{each.said.object} {each.said.fault}" if each.said else "nothing" for each in graded if each.rank != 1]
    return {
        "cases": len(graded),
        "object_type@1": _mean([each.rank == 1 for each in graded]),
        "object_type@3": _mean([each.rank > 0 for each in graded]),
        "said": "; ".join(dict.fromkeys(wrong)),
    }


def _mean(values: Sequence[float | bool]) -> float:
    return round(float(np.mean(values)), 4)


def cases_of(path: Path) -> list[Case]:
    """Return the cases of a file. Raises MalformedInput."""
    rows = cast("list[dict[str, Any]]", json_lines(path, *FIELDS))
    try:
        return [
            Case(
                row["query"],
                tuple(
                    ToolOutput(
                        each["tool"], {key: str(value) for key, value in each["arguments"].items()}, each["text"]
                    )
                    for each in row["outputs"]
                ),
                row["root_cause"],
                row["fault_object"],
            )
            for row in rows
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise MalformedInput(
            f"{path} has a case that is not in the format that `tests/benchmarks/cloud_opsbench.py` describes: {error!r}."
        ) from error
