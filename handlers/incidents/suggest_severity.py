"""Suggest an incident's severity from past incidents, with evidence and a badge. A person decides."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import Incident, SeveritySuggestion
from core.model.language_model import ModelRequest, Urgency
from core.model.prediction import PredictionKind
from core.ports import Clock, LanguageModel, Store
from core.triage.history import IncidentHistory
from core.triage.model_suggestions import SEVERITY_VERSION, judge_severity
from core.triage.severity import VERSION, SeverityAssessment, assess_severity
from handlers.feedback.accept_suggestion import is_rejected
from handlers.feedback.record_prediction import record_prediction

ENGINE = "evidence"
DEADLINE = 60.0  # seconds for the language model

log = structlog.get_logger()


async def suggest_severity(
    incident: Incident,
    *,
    history: IncidentHistory,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
) -> Incident:
    """Return the incident with a suggested severity; with none if too few similar incidents are known.

    A severity that a person set is kept, with its suggestion. A rejected suggestion is not repeated.
    """
    if incident.severity_by:
        return incident
    found = await asyncio.to_thread(assess_severity, incident, history)
    if found is None:
        return replace(incident, suggested_severity=None)
    engine, version = ENGINE, VERSION
    if model is not None and (judged := await _judged(model, incident, found, history)) is not None:
        found, engine, version = judged, model.name, SEVERITY_VERSION
    prediction_id, badge = await record_prediction(
        PredictionKind.SEVERITY,
        incident.id,
        found.severity,
        found.evaluation,
        engine=engine,
        estimator_version=version,
        group=found.severity,
        references=found.references,
        store=store,
        clock=clock,
    )
    if await is_rejected(prediction_id, store):
        return replace(incident, suggested_severity=None)
    suggestion = SeveritySuggestion(found.severity, found.evidence, badge, prediction_id)
    return replace(incident, suggested_severity=suggestion)


async def _judged(
    model: LanguageModel, incident: Incident, found: SeverityAssessment, history: IncidentHistory
) -> SeverityAssessment | None:
    by_id = {past.id: past for past in history.incidents}
    past = [by_id[each] for each in found.references]
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE)
    try:
        return await judge_severity(model, request, incident, found, past)
    except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
        log.warning("severity without the language model", incident=incident.id, reason=str(error))
        return None
