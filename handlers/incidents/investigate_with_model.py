"""Let a language model call further tools if they may show something new, and rank the causes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import Explanation, Gap
from core.model.language_model import ModelRequest, Urgency
from core.model.trajectory import Ending, Finding, Step
from core.ports import LanguageModel, Tool
from core.rca.controller import MAX_SECONDS, MAX_TOKENS, SAMPLES, Investigation, investigate
from core.rca.grounding import grounded
from core.rca.incident_signals import IncidentSignals
from core.rca.merge import merged
from core.rca.model_ranking import ranked_by_model, situation
from core.rca.observation_tools import LogExpert, observation_tools, planned_calls
from core.rca.observations import Observations
from handlers.incidents.observe_incident import offer_tools
from handlers.ports import Readers

DEADLINE = 60.0  # seconds for the choice among the causes
REPLY_DEADLINE = 120.0  # seconds that one reply of the controller may take
NOTHING_MORE = Readers((), (), (), {})
CHOOSING = "comparing the causes with the language model, for at most {seconds:.0f} s"

Progress = Callable[[str], Awaitable[None]]  # receives one line about the current activity

log = structlog.get_logger()


async def investigate_with_model(
    explanation: Explanation,
    observations: Observations,
    incident_signals: IncidentSignals,
    *,
    model: LanguageModel,
    right: float,
    progress: Progress,
    samples: int = SAMPLES,
    readers: Readers = NOTHING_MORE,
) -> Explanation:
    """Return the explanation with the causes ranked by the model, and with its own finding if it investigated further.

    It investigates further only if the code or a toolbox of `readers` has tools that the fixed plan could not call.
    `right` is its skill, in [0, 1]. If it fails, the findings so far are kept.
    """
    incident = observations.incident
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=REPLY_DEADLINE)
    tools, gaps = await action_set(observations, incident_signals, readers)
    if gaps:
        explanation = replace(explanation, gaps=tuple(dict.fromkeys((*explanation.gaps, *gaps))))
    if tools:
        investigation = Investigation(model, tools, observations.services, request)
        explanation = await _investigated_further(
            explanation, observations, incident_signals, investigation, progress, samples
        )
    if len(explanation.hypotheses) < 2:
        return explanation
    await progress(CHOOSING.format(seconds=DEADLINE))
    try:
        async with asyncio.timeout(DEADLINE):
            asked = replace(request, deadline=DEADLINE)
            ranked = await ranked_by_model(explanation.hypotheses, observations, model, asked, right)
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        log.warning("causes not ranked by the language model", incident=incident.id, reason=str(error) or "too slow")
        return explanation
    return replace(explanation, hypotheses=ranked, engine=model.name)


async def _investigated_further(
    explanation: Explanation,
    observations: Observations,
    incident_signals: IncidentSignals,
    investigation: Investigation,
    progress: Progress,
    samples: int,
) -> Explanation:
    """Return the explanation with the controller's trajectory, and with its finding if the observations support it."""

    async def report(step: Step) -> None:
        if step.action and not step.fault:
            asked = ", ".join(step.action.arguments.values())
            spent = f"{investigation.tokens:,} of {MAX_TOKENS:,} tokens"
            await progress(f"{step.action.tool}({asked}) · {spent}, {investigation.seconds:.0f} of {MAX_SECONDS:.0f} s")

    investigation.listener = report
    try:
        async with asyncio.timeout(MAX_SECONDS):
            trajectory = await investigate(investigation, situation(observations), samples=samples)
    except TimeoutError:
        trajectory = investigation.ended(Ending.MODEL_UNAVAILABLE)
    explanation = replace(explanation, trajectory=trajectory)
    finding = trajectory.finding
    if finding is None:
        return explanation
    shown = tuple(investigation.snapshots.read.values())
    evidence = await asyncio.to_thread(grounded, finding.evidence, shown, observations)  # aligns megabytes of text
    hypotheses = merged(
        explanation.hypotheses, finding, evidence, _votes(finding, trajectory.samples), incident_signals
    )
    led = bool(evidence and hypotheses) and hypotheses[0].service == finding.service
    engine = investigation.model.name if led else explanation.engine
    blamed = tuple(f"{hypothesis.service}: " for hypothesis in hypotheses if hypothesis.service)
    ruled_out = tuple(line for line in explanation.ruled_out if not line.startswith(blamed))
    return replace(explanation, hypotheses=hypotheses, ruled_out=ruled_out, engine=engine)


async def action_set(
    observations: Observations, incident_signals: IncidentSignals, readers: Readers
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """Return the tools of the controller, and a gap for each system that could not list its tools.

    Returns no tools if the fixed plan could call all of them.
    """
    more, gaps = await offer_tools(readers.code, readers.toolboxes, observations)
    unasked = [tool for tool in more if not planned_calls([tool], observations.services)]
    if not unasked:
        return (), gaps
    return (*observation_tools(observations, incident_signals), *unasked, LogExpert()), gaps


def _votes(finding: Finding, samples: tuple[Finding, ...]) -> float:
    """Return the share of samples that name the same service; 1 if there are no samples."""
    return sum(each.service == finding.service for each in samples) / len(samples) if samples else 1.0
