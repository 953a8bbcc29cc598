"""Let a language model investigate an incident with tools."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from core.model.answer import EVIDENCE
from core.model.badge import Estimator, Evaluation, PredictionKind
from core.model.findings import Explanation, Gap
from core.model.language_model import Ending, ModelRequest, Step, Urgency
from core.model_calls.choice import Skill
from core.model_calls.metered_model import Limits, MeteredModel, Trace, untraced
from core.ports import LanguageModel, Tool
from core.rca.agent.actions import Snapshots
from core.rca.agent.conclusion import MergedCauses, compared, situation
from core.rca.agent.controller import Investigation, investigate
from core.rca.agent.experts import CodeExpert, LogExpert, Past
from core.rca.cause_candidates import (
    FINDING_VERSION,
    VERSION,
    evaluate_finding,
    evaluate_ranking,
    is_unsure,
)
from core.rca.incident_signals import IncidentSignals
from core.rca.observation_tools import MAX_LISTED, observation_tools
from core.rca.observations import Observations
from handlers.common.ports import Readers
from handlers.common.record_prediction import Claimed
from handlers.incidents.check_finding import checked_finding
from handlers.incidents.observe_incident import offer_tools

AGENT = "investigator"  # the name of the model with tools, in traces
REPLY_DEADLINE = 120.0  # seconds that one reply of the controller may take
NOTHING_MORE = Readers()

Progress = Callable[[str], Awaitable[None]]  # receives one line about the current activity

_ID = re.compile(r"[^\s(),]+")  # in “commit b51815dfc7 (deploy DEP-4001) of shop”

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ClaimedExplanation:
    """An explanation, and what is claimed by it.

    `first` is the claim of its first cause, None without one; `second` is that of its second, if the engines disagree.
    """

    explanation: Explanation
    first: Claimed | None
    second: Claimed | None = None


def by_evidence(explanation: Explanation, evaluation: Evaluation | None) -> ClaimedExplanation:
    """Return the conclusion of the evidence engine alone."""
    return ClaimedExplanation(
        explanation, evaluation and (Estimator(PredictionKind.CAUSE, EVIDENCE, VERSION), evaluation)
    )


def asks_model(skill: Skill, conclusion: ClaimedExplanation) -> bool:
    """Return whether a model of this skill is asked, by what the evidence engine found."""
    return skill.tools > 0 and (
        skill.always or is_unsure(conclusion.first[1] if conclusion.first is not None else None)
    )


async def investigate_with_model(
    before: ClaimedExplanation,
    observations: Observations,
    incident_signals: IncidentSignals,
    *,
    model: LanguageModel,
    skill: Skill,
    progress: Progress,
    limits: Limits = Limits(),
    readers: Readers = NOTHING_MORE,
    past: Past = lambda _: (),
    documents: Sequence[Tool] = (),
    trace: Trace = untraced,
) -> ClaimedExplanation:
    """Return the conclusion of the evidence engine, `before`, with that of a model.

    It investigates with all tools within the `limits`. If it fails, or finds nothing that its quotes show, the evidence engine's conclusion is kept.
    """
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=observations.incident.id, deadline=REPLY_DEADLINE)
    metered, snapshots = MeteredModel(model, limits), Snapshots()
    tools, gaps = await action_set(observations, incident_signals, readers)
    tools = (*tools, *documents, *experts(metered, request, snapshots, readers, past))
    explanation = replace(before.explanation, gaps=tuple(dict.fromkeys((*before.explanation.gaps, *gaps))))
    changes = tuple(dict.fromkeys(each.id for each in sorted(observations.changes, key=lambda each: each.at)))
    investigation = Investigation(
        metered,
        tools,
        observations.services,
        request,
        changes[-MAX_LISTED:],
        trace=trace,
        limits=limits,
        snapshots=snapshots,
    )
    return await _investigated(
        replace(before, explanation=explanation), observations, incident_signals, investigation, skill, progress
    )


async def _investigated(
    before: ClaimedExplanation,
    observations: Observations,
    incident_signals: IncidentSignals,
    investigation: Investigation,
    skill: Skill,
    progress: Progress,
) -> ClaimedExplanation:
    """Return the conclusion with the model's trajectory, and with its finding if quotes of what it read show it."""
    model, limits = investigation.model, investigation.model.limits

    async def report(step: Step) -> None:
        if step.action and not step.fault:
            spent = f"{model.tokens:,} of {limits.tokens:,} tokens, {model.seconds:.0f} of {limits.seconds:.0f} s"
            await progress(f"{step.action.call} · {spent}")

    investigation.listener = report
    try:
        async with asyncio.timeout(limits.seconds):
            with investigation.trace("invoke_agent", AGENT):
                trajectory = await investigate(investigation, situation(observations))
    except TimeoutError:
        trajectory = investigation.ended(Ending.MODEL_UNAVAILABLE)
    explanation = replace(before.explanation, trajectory=trajectory)
    kept = replace(before, explanation=explanation)
    if trajectory.finding is None:
        return kept
    checked = await checked_finding(
        trajectory.finding,
        investigation.snapshots,
        observations,
        model if skill.judges else None,
        investigation.request,
    )
    trajectory = replace(trajectory, finding=checked.finding or trajectory.finding, left_out=checked.left_out)
    kept = replace(kept, explanation=replace(explanation, trajectory=trajectory))
    if checked.finding is None:
        return kept
    verdict = compared(
        explanation.hypotheses, trajectory, checked.evidence, skill.tools, incident_signals, observations
    )
    return _conclusion(kept, verdict, observations, incident_signals)


def _conclusion(
    kept: ClaimedExplanation, verdict: MergedCauses, observations: Observations, incident_signals: IncidentSignals
) -> ClaimedExplanation:
    """Return the conclusion of a verdict, with the claim of each engine."""
    services = tuple(f"{each.service}: " for each in verdict.hypotheses if each.service)
    changes = {each.change.id for each in verdict.hypotheses if each.change}

    def is_open(line: str) -> bool:
        return not line.startswith(services) and changes.isdisjoint(_ID.findall(line.partition(" at ")[0]))

    explanation = replace(
        kept.explanation,
        hypotheses=verdict.hypotheses,
        ruled_out=tuple(filter(is_open, kept.explanation.ruled_out)),
        unchecked=tuple(filter(is_open, kept.explanation.unchecked)),
    )
    assert explanation.trajectory is not None
    if not (verdict.by_model or verdict.dissent):
        return replace(kept, explanation=explanation)
    theirs = verdict.hypotheses[0 if verdict.by_model else 1]
    if theirs.found_by or kept.first is None:
        judged = evaluate_finding(theirs, incident_signals, observations)
    else:
        judged = evaluate_ranking((theirs,), kept.first[1], incident_signals, observations)
    claim = Estimator(PredictionKind.CAUSE, explanation.trajectory.model, FINDING_VERSION), judged
    if not verdict.by_model:
        return ClaimedExplanation(explanation, kept.first, claim)
    explanation = replace(explanation, engine=explanation.trajectory.model)
    return ClaimedExplanation(explanation, claim, kept.first if verdict.dissent else None)


async def action_set(
    observations: Observations, incident_signals: IncidentSignals, readers: Readers
) -> tuple[tuple[Tool, ...], tuple[Gap, ...]]:
    """Return the tools of the controller, and a gap for each system that could not list its tools.

    They are all readers, without the experts: what the fixed plan has read of logs, metrics, traces, changes, builds and past incidents, the
    code, and the tools of Kubernetes, build servers and MCP servers.
    """
    more, gaps = await offer_tools(readers.toolboxes, observations)
    own = {tool.name: tool for tool in observation_tools(observations, incident_signals)}
    return (*own.values(), *(tool for tool in more if tool.name not in own)), gaps


def experts(
    model: MeteredModel, request: ModelRequest, snapshots: Snapshots, readers: Readers, past: Past
) -> tuple[Tool, ...]:
    """Return the tools with which the controller lets the model read logs and code (RCAgent, section 3.2.2)."""
    return (
        LogExpert(model, request, past, readers.embedder),
        *(CodeExpert(model, request, each, snapshots) for each in readers.code[:1]),
    )
