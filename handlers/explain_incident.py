"""Why did it break: every read-only tool is asked in a fixed plan, and what they say becomes ranked hypotheses."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from core.confidence.cause_evidence import VERSION, evaluate_cause
from core.confidence.prediction import PredictionKind
from core.incident import Incident
from core.ports import Clock, LanguageModel, Store
from core.rca.explain import explain
from core.rca.scene import survey
from core.triage.history import IncidentHistory
from handlers.investigate_with_model import Progress, investigate_with_model
from handlers.observe_incident import Readers, observe_incident
from handlers.record_prediction import record_prediction


async def explain_incident(
    incident: Incident,
    readers: Readers,
    *,
    history: IncidentHistory,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
    progress: Progress | None = None,
) -> Incident:
    """The incident with its explanation: hypotheses best first, or none and what was ruled out.

    A tool that fails or does not answer in time is named in the explanation, and the rest goes on. A `model` looks for
    itself after the fixed plan, and `progress` is told what it does.
    """
    observations = await observe_incident(incident, readers, history=history, clock=clock)
    explanation, evaluation = await asyncio.to_thread(explain, observations)
    if model is not None:
        scene = await asyncio.to_thread(survey, observations)
        explanation = await investigate_with_model(explanation, observations, scene, model=model, progress=progress)
        if explanation.cause is not None:
            scores = [hypothesis.score for hypothesis in explanation.hypotheses]
            evaluation = evaluate_cause(scores, scene, observations)
    if explanation.cause is None or evaluation is None:
        return replace(incident, explanation=explanation)
    prediction_id, badge = await record_prediction(
        PredictionKind.CAUSE,
        incident.id,
        explanation.cause.cause,
        evaluation,
        engine=explanation.engine,
        estimator_version=VERSION,
        store=store,
        clock=clock,
    )
    return replace(incident, explanation=replace(explanation, badge=badge, prediction_id=prediction_id))
