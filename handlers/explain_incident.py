"""Why did it break: every read-only tool is asked in a fixed plan, and what they say becomes ranked hypotheses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from core.confidence.cause_evidence import VERSION, evaluate_cause
from core.confidence.prediction import Evaluation, PredictionKind
from core.confidence.reference import Claim, settled_case
from core.incident import Explanation, Hypothesis, Incident
from core.language_model import Urgency
from core.ports import Clock, LanguageModel, Store
from core.rca.explain import explain
from core.rca.scene import survey
from core.team import Team
from core.triage.history import IncidentHistory
from handlers.estimate_confidence import estimate_confidence
from handlers.investigate_with_model import Progress, investigate_with_model
from handlers.observe_incident import Readers, observe_incident
from handlers.record_prediction import record_prediction

EVIDENCE = "evidence"  # the engine that asks no model
JUDGED_BY = 8  # similar past incidents that a model's finding is judged by


async def explain_incident(
    incident: Incident,
    readers: Readers,
    *,
    history: IncidentHistory,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
    progress: Progress | None = None,
    teams: Sequence[Team] = (),
) -> Incident:
    """The incident with its explanation: hypotheses best first, or none and what was ruled out.

    A tool that fails or does not answer in time is named in the explanation, and the rest goes on. A `model` looks for
    itself after the fixed plan, and `progress` is told what it does; what it finds, it is asked how sure one may be of.
    """
    observations = await observe_incident(incident, readers, history=history, clock=clock)
    explanation, evaluation = await asyncio.to_thread(explain, observations)
    if model is not None:
        scene = await asyncio.to_thread(survey, observations)
        explanation = await investigate_with_model(
            explanation,
            observations,
            scene,
            model=model,
            progress=progress,
            history=history,
            readers=readers,
        )
        if explanation.cause is not None:
            scores = [hypothesis.score for hypothesis in explanation.hypotheses]
            evaluation = evaluate_cause(scores, scene, observations)
    if explanation.cause is None or evaluation is None:
        return replace(incident, explanation=explanation)
    evaluation, version = await _judged(incident, explanation, evaluation, history, model)
    prediction_id, badge = await record_prediction(
        PredictionKind.CAUSE,
        incident.id,
        explanation.cause.cause,
        evaluation,
        engine=explanation.engine,
        estimator_version=version,
        group=_group(explanation.cause, teams),
        references=tuple(similar.id for similar in explanation.similar),
        store=store,
        clock=clock,
    )
    return replace(incident, explanation=replace(explanation, badge=badge, prediction_id=prediction_id))


async def _judged(
    incident: Incident,
    explanation: Explanation,
    measured: Evaluation,
    history: IncidentHistory,
    model: LanguageModel | None,
) -> tuple[Evaluation, str]:
    """What the evidence engine found it has measured itself; a model's finding is judged by how similar cases ended.

    They are those from before the incident, whenever it is looked into.
    """
    if explanation.engine == EVIDENCE or explanation.cause is None:
        return measured, VERSION
    situation = f"{incident.description}\n{incident.service}"
    similar = history.similar(situation, JUDGED_BY, without=frozenset({incident.id}))
    return await estimate_confidence(
        Claim(incident.id, situation, explanation.cause.cause, incident.started_at),
        [settled_case(neighbour.incident) for neighbour in similar],
        (measured, VERSION),
        model=model,
        urgency=Urgency.INCIDENT,
        requester=incident.id,
    )


def _group(cause: Hypothesis, teams: Sequence[Team]) -> str:
    """The team that runs the service that is to blame, or that service."""
    return next((team.id for team in teams if cause.service in team.services), cause.service)
