"""`python -m tests.benchmarks causes`: how long a cause takes, from the tools of a cluster to its words.

A Kubernetes of our own, on loopback, has several services, of which one selects labels that no pod has. Reading is the
calls of all tools about all services at once, 100 outputs or more; thinking is everything from these outputs to the
explanation. Both are done anew in each round.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import timedelta

import numpy as np
from rich.console import Console

from adapters.tools.kubernetes import Kubernetes, Workload
from bot.evaluation.report import print_rows
from core.ports import TimeWindow
from core.rca.explain import explain
from core.rca.observations import Observations
from core.rca.tool_outputs import ToolOutput
from tests.fakes.outage import START, incident
from tests.fakes.tool_servers import FakeKubernetes, event, reached

SERVICES, ROUNDS = 34, 20
NODES = 12
LIMIT = 2.0  # seconds from an alert to its cause, at the 95th percentile


def _cluster(names: list[str]) -> FakeKubernetes:
    fake = FakeKubernetes()
    at = f"{START - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    for name in names:
        labels = {"app": name}
        container = {"name": "main", "image": f"{name}:1", "ports": [{"containerPort": 8080}]}
        status = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}}]}
        metadata = {"name": f"{name}-0", "namespace": "live", "labels": labels, "uid": name}
        fake.pods.append({"metadata": metadata, "spec": {"containers": [container]}, "status": status})
        fake.events.append(event("Pulled", f"image of {name} pulled", at, pod=f"{name}-0", kind="Normal"))
    selectors = {name: name for name in names} | {names[0]: "nobody"}
    services = [
        {
            "metadata": {"name": name, "namespace": "live", "uid": name},
            "spec": {"selector": {"app": selected}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        for name, selected in selectors.items()
    ]
    nodes = [
        {
            "metadata": {"name": f"worker-{number}", "uid": str(number)},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        for number in range(NODES)
    ]
    fake.objects = {"services": services, "nodes": nodes}
    return fake


async def _measured(rounds: int) -> list[tuple[int, float, float]]:
    """Return the outputs, and the seconds of reading and of thinking, of each round."""
    names = [f"service-{number}" for number in range(SERVICES)]
    about = incident(service=names[0])
    window = TimeWindow(about.started_at - timedelta(hours=1), about.started_at + timedelta(minutes=1))
    measures: list[tuple[int, float, float]] = []
    async with reached(_cluster(names)) as http:
        cluster = Kubernetes(
            "cluster", http, {name: Workload(namespace="live", selector=f"app={name}") for name in names}
        )
        for _ in range(rounds):
            started = time.perf_counter()
            calls = [
                (tool.name, {"service": name}, tool.call({"service": name}))
                for tool in await cluster.tools(names, window)
                for name in names
            ]
            texts = await asyncio.gather(*(call for *_, call in calls))
            read = time.perf_counter()
            outputs = tuple(
                ToolOutput(tool, arguments, text) for (tool, arguments, _), text in zip(calls, texts, strict=True)
            )
            explanation, _evaluation = explain(
                Observations(about, window.end, tuple(names), (), (), (), {}, outputs=outputs)
            )
            assert explanation.cause is not None
            assert "selects labels that no pod has" in explanation.cause.cause
            measures.append((len(outputs), read - started, time.perf_counter() - read))
    return measures


def main() -> None:
    parser = argparse.ArgumentParser(description="How long reading a cluster and finding the cause takes.")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    measured = asyncio.run(_measured(parser.parse_args().rounds))
    columns = {
        "reading": [read for _, read, _ in measured],
        "thinking": [thought for *_, thought in measured],
        "both": [read + thought for _, read, thought in measured],
    }
    rows = [(name, *(f"{np.percentile(each, share):.2f} s" for share in (50, 95))) for name, each in columns.items()]
    print_rows(Console(), ("part", "p50", "p95"), rows, f"{measured[0][0]} outputs of tools, {len(measured)} rounds")
    if np.percentile(columns["both"], 95) > LIMIT:
        raise SystemExit(f"More than {LIMIT:.0f} s.")
