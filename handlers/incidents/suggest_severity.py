"""Suggest an incident's severity from past incidents, with evidence and a badge. A person decides."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from core.model.incident import Incident, SeveritySuggestion
from core.model.prediction import PredictionKind
from core.ports import Clock, Store
from core.triage.history import IncidentHistory
from core.triage.severity import VERSION, assess_severity
from handlers.feedback.accept_suggestion import is_rejected
from handlers.feedback.record_prediction import record_prediction

ENGINE = "evidence"


async def suggest_severity(
    incident: Incident,
    *,
    history: IncidentHistory,
    store: Store,
    clock: Clock,
) -> Incident:
    """Return the incident with a suggested severity; with none if too few similar incidents are known.

    A severity that a person set is kept, with its suggestion. A rejected suggestion is not repeated.
    """
    if incident.severity_by:
        return incident
    found = await asyncio.to_thread(assess_severity, incident, history)
    if found is None:
        return replace(incident, suggested_severity=None)
    prediction_id, badge = await record_prediction(
        PredictionKind.SEVERITY,
        incident.id,
        found.severity,
        found.evaluation,
        engine=ENGINE,
        estimator_version=VERSION,
        group=found.severity,
        references=found.references,
        store=store,
        clock=clock,
    )
    if await is_rejected(prediction_id, store):
        return replace(incident, suggested_severity=None)
    suggestion = SeveritySuggestion(found.severity, found.evidence, badge, prediction_id)
    return replace(incident, suggested_severity=suggestion)
