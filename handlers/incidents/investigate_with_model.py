"""Root-cause analysis by a language model that calls tools, merged with the evidence engine's hypotheses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.model.incident import Explanation, Gap
from core.model.language_model import ModelRequest, Urgency
from core.model.trajectory import Ending, Finding, Step, Trajectory
from core.ports import LanguageModel, Tool
from core.rca.controller import SAMPLES, Investigation, investigate
from core.rca.grounding import grounded
from core.rca.log_analysis import LogAnalysis
from core.rca.merge import merged
from core.rca.observation_tools import observation_tools
from core.rca.observations import Observations
from core.rca.scene import Scene
from core.triage.history import IncidentHistory
from handlers.incidents.observe_incident import offer_tools
from handlers.ports import Readers

DEADLINE = 180.0  # seconds that one reply may take
WHOLE_DEADLINE = 900.0  # seconds for all steps and samples; then what was found until then counts
NO_HISTORY = IncidentHistory(())
NOTHING_MORE = Readers((), (), (), {})

Progress = Callable[[str], Awaitable[None]]  # receives one line about the current activity


async def investigate_with_model(
    explanation: Explanation,
    observations: Observations,
    scene: Scene,
    *,
    model: LanguageModel,
    progress: Progress | None = None,
    samples: int = SAMPLES,
    history: IncidentHistory = NO_HISTORY,
    readers: Readers = NOTHING_MORE,
) -> Explanation:
    """Return the explanation with the model's finding merged in, and the model's trajectory.

    The model can query the observations, a log expert (which also reads similar incidents from `history`), and the code
    and toolboxes of `readers`.

    If the model fails, or its cited evidence cannot be found in what it read, the evidence engine's hypotheses are
    kept, with the trajectory so far.
    """

    async def report(step: Step) -> None:
        if progress and step.action and not step.fault:
            asked = ", ".join(step.action.arguments.values())
            await progress(f"{step.action.tool}({asked})")

    incident = observations.incident
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE)
    tools, gaps = await action_set(model, request, observations, scene, history=history, readers=readers)
    investigation = Investigation(model, tools, observations.services, request, listener=report)
    try:
        async with asyncio.timeout(WHOLE_DEADLINE):
            trajectory = await investigate(
                investigation, f"{incident.description}\nService: {incident.service}", samples=samples
            )
    except TimeoutError:
        ending = Ending.MODEL_UNAVAILABLE if investigation.finding is None else Ending.FINALISED
        trajectory = Trajectory(tuple(investigation.steps), ending, investigation.finding)
    explanation = replace(explanation, trajectory=trajectory, gaps=tuple(dict.fromkeys((*explanation.gaps, *gaps))))
    finding = trajectory.finding
    if finding is None:
        return explanation
    shown = tuple(investigation.snapshots.read.values())
    evidence = await asyncio.to_thread(grounded, finding.evidence, shown, observations)  # aligns megabytes of text
    hypotheses = merged(explanation.hypotheses, finding, evidence, _votes(finding, trajectory.samples), scene)
    led = bool(evidence and hypotheses) and hypotheses[0].service == finding.service
    engine = model.name if led else explanation.engine
    blamed = tuple(f"{hypothesis.service}: " for hypothesis in hypotheses if hypothesis.service)
    ruled_out = tuple(line for line in explanation.ruled_out if not line.startswith(blamed))
    return replace(explanation, hypotheses=hypotheses, ruled_out=ruled_out, engine=engine)


async def action_set(
    model: LanguageModel,
    request: ModelRequest,
    observations: Observations,
    scene: Scene,
    *,
    history: IncidentHistory,
    readers: Readers,
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """Return the tools that the model may call, and a gap for each system that could not list its tools."""
    more, gaps = await offer_tools(readers.code, readers.toolboxes, observations)
    expert = LogAnalysis(model, request, history.similar, readers.embedder)
    return (*observation_tools(observations, scene), *more, expert), gaps


def _votes(finding: Finding, samples: tuple[Finding, ...]) -> float:
    """Return the share of samples that name the same service; 1 if there are no samples."""
    return sum(each.service == finding.service for each in samples) / len(samples) if samples else 1.0
