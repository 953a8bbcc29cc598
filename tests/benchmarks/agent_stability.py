"""`python -m tests.benchmarks agent-stability`: does the investigating model end every investigation well, whatever it says?

The sample company's live incidents are investigated over and over, each time with another seed and at temperature 1,
which RCAgent found hardest (section 5.3, “w/ Sampling”). The model has every action that it has in the product: what was
observed, the log expert, and the code expert, who reads this program's own code in place of the company's. A model of
random weights will do: what counts is the frame.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from adapters.alerts.alertmanager import parse
from adapters.llama.server import LlamaServer
from adapters.sources.past_incidents import load_past_incidents
from adapters.tools.code_repository import CodeRepositories
from adapters.tools.files import ChangeFiles, LogFiles, MetricFiles
from bot.commands.demo import SAMPLE_COMPANY, scenarios
from bot.config.workspace import load_workspace
from bot.evaluation.report import bootstrap_interval
from core.incidents.folding import open_from
from core.model.conversation import Place, Platform
from core.model.errors import ToolUnavailable
from core.model.incident import Incident
from core.model.language_model import Ending, ModelRequest, Trajectory, Urgency
from core.model_calls.metered_model import MeteredModel
from core.rca.agent.actions import Snapshots
from core.rca.agent.controller import Investigation
from core.rca.incident_signals import survey
from core.rca.observations import Observations
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Readers
from handlers.incidents.investigate_with_model import action_set, experts
from handlers.incidents.observe_incident import observe_incident

AT_ONCE = 4  # investigations, as many as a server usually has slots
DEADLINE = 120.0  # seconds that one reply may take
DETECTED = timedelta(minutes=3)  # after the start: nothing later is looked at


async def run(url: str, trajectories: int, out: Console, model: str = "", api_key: str = "") -> dict[str, Any]:
    """Investigate `trajectories` times, and return the figures."""
    scenes = [await _observed(name) for name in scenarios()]
    ended: list[Trajectory] = []
    crashes: list[str] = []
    free = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession() as session:
        server = LlamaServer(url, session, model=model, api_key=api_key)
        with Progress(console=out) as progress:
            task = progress.add_task("Investigating", total=trajectories)

            async def investigate(seed: int) -> None:
                async with free:
                    try:
                        ended.append(await _investigated(server, scenes[seed % len(scenes)], seed))
                    except Exception as error:  # noqa: BLE001  a crash is one of the things that are counted
                        crashes.append(repr(error))
                    progress.advance(task)

            await asyncio.gather(*(investigate(seed) for seed in range(trajectories)))
    return _figures(ended, crashes, server.name)


async def _investigated(server: LlamaServer, observations: Observations, seed: int) -> Trajectory:
    incident = observations.incident
    request = ModelRequest(
        (), seed=seed, temperature=1.0, urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE
    )
    tools, gaps = await action_set(observations, survey(observations), _readers())
    if gaps:
        raise ToolUnavailable("; ".join(gap.text for gap in gaps))
    metered, snapshots = MeteredModel(server), Snapshots()
    tools = (*tools, *experts(metered, request, snapshots, _readers(), lambda _: ()))
    investigation = Investigation(metered, tools, observations.services, request, snapshots=snapshots, temperature=1.0)
    return await investigation.run(f"{incident.description}\nService: {incident.service}")


async def _observed(scenario: str) -> Observations:
    """What the sample company's tools say about one of its live incidents, a few minutes after it began."""
    live = SAMPLE_COMPANY / "live"
    body = (live / scenario / "alert.json").read_bytes()
    began = datetime.fromisoformat(json.loads(body)["alerts"][0]["startsAt"]).astimezone(UTC)
    incident: Incident = open_from(parse(body, began), scenario, Place(Platform.TERMINAL, "evaluation"))
    return await observe_incident(incident, _readers(), history=_history(), clock=_Stopped(began + DETECTED))


@cache
def _readers() -> Readers:
    live = SAMPLE_COMPANY / "live"
    dependencies = load_workspace(SAMPLE_COMPANY / "plumbline.yaml").dependencies
    return Readers(
        [LogFiles("logs", live)],
        [MetricFiles("metrics", live)],
        [ChangeFiles("changes", live)],
        dependencies,
        code=[CodeRepositories("code", {"plumbline": SAMPLE_COMPANY.parent})],
    )


@cache
def _history() -> IncidentHistory:
    return IncidentHistory(load_past_incidents(Path(SAMPLE_COMPANY) / "incidents.jsonl"))


class _Stopped:
    """A clock that stands still."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at


def _figures(ended: list[Trajectory], crashes: list[str], model: str) -> dict[str, Any]:
    passed = [*(float(each.ending is Ending.FINALISED) for each in ended), *(0.0 for _ in crashes)]
    faults = Counter(step.fault for each in ended for step in each.steps if step.fault)
    steps = sum(len(each.steps) for each in ended)
    return {
        "engine": model,
        "cases": len(passed),
        "pass_rate": fmean(passed),
        "pass_rate_ci": bootstrap_interval(passed),
        "invalid_rate": sum(faults.values()) / steps if steps else 0.0,
        "length_mean": fmean(len(each.steps) + 1 for each in ended) if ended else 0.0,
        "crashes": len(crashes),
        "crashed_with": crashes[:5],
        "calls": dict(Counter(step.action.tool for each in ended for step in each.steps if step.action)),
        "endings": dict(Counter(str(each.ending) for each in ended)),
        "faults": dict(faults.most_common(5)),
    }


def print_table(figures: Mapping[str, Any], out: Console) -> None:
    table = Table(title=f"{figures['cases']} investigations by {figures['engine']}")
    for name in ("", "Plumbline", "RCAgent, 13 B, trained (table 4)"):
        table.add_column(name, justify="left" if not name else "right")
    table.add_row("pass rate", f"{figures['pass_rate']:.4f}", "0.9938")
    table.add_row("invalid rate", f"{figures['invalid_rate']:.4f}", "0.0793")
    table.add_row("steps, mean", f"{figures['length_mean']:.2f}", "6.78")
    table.add_row("crashes", str(figures["crashes"]), "")
    out.print(table)
