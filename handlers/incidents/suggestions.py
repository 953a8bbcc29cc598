"""Suggest an incident's severity, and the known incident that it duplicates, with evidence and a badge. A person decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog

from core.model.conversation import Audience
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import DuplicateSuggestion, Incident, SeveritySuggestion, may_see_incident
from core.model.language_model import ModelRequest, Urgency
from core.model.prediction import Evaluation, PredictionKind
from core.ports import LanguageModel
from core.triage.duplicates import CANDIDATES, DuplicateCandidate, duplicate_candidates, evaluate_duplicate
from core.triage.duplicates import VERSION as DUPLICATE_VERSION
from core.triage.history import IncidentHistory
from core.triage.model_suggestions import DUPLICATE_VERSION as MODEL_DUPLICATE_VERSION
from core.triage.model_suggestions import SEVERITY_VERSION as MODEL_SEVERITY_VERSION
from core.triage.model_suggestions import judge_duplicates, judge_severity
from core.triage.severity import VERSION as SEVERITY_VERSION
from core.triage.severity import SeverityAssessment, assess_severity
from handlers.feedback.record_prediction import is_rejected, record_prediction
from handlers.ports import IncidentPorts

ENGINE = "evidence"
DEADLINE = 60.0  # seconds for the language model
COMPARED = 200  # latest incidents compared

log = structlog.get_logger()


async def suggest_duplicate(incident: Incident, ports: IncidentPorts, *, audience: Audience) -> Incident:
    """Return the incident with its probable duplicate, among the incidents that its readers may see.

    If that one is itself a confirmed duplicate, its original is suggested. A confirmed duplicate is kept, a rejected
    suggestion is not repeated, and a merged incident gets none.
    """
    if incident.duplicate_of or incident.absorbed is not None:
        return incident
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(COMPARED)
    others = [other for other in recent if may_see_incident(audience, other, ports.channels)]
    ranked = await asyncio.to_thread(duplicate_candidates, incident, others, ports.dependencies)
    candidates = [each for each in ranked if each.convinces][:CANDIDATES]
    if not candidates:
        return replace(incident, suggested_duplicate=None)
    evidence = evaluate_duplicate(incident, candidates[0], [each.score for each in ranked if each is not candidates[0]])
    found = (candidates[0], evidence, ENGINE, DUPLICATE_VERSION)
    if ports.model is not None:
        judged = await _judged_duplicate(ports.model, incident, candidates, found)
        if judged is None:
            return replace(incident, suggested_duplicate=None)
        found = judged
    candidate, evaluation, engine, version = found
    known = _root(candidate.incident, others)
    prediction_id, badge = await record_prediction(
        PredictionKind.DUPLICATE, incident.id, known.id, evaluation, ports, engine=engine, estimator_version=version
    )
    if await is_rejected(prediction_id, ports.store):
        return replace(incident, suggested_duplicate=None)
    suggestion = DuplicateSuggestion(known.id, known.title, candidate.evidence, badge, prediction_id)
    return replace(incident, suggested_duplicate=suggestion)


_Found = tuple[DuplicateCandidate, Evaluation, str, str]  # candidate, evaluation, engine, version


async def _judged_duplicate(
    model: LanguageModel, incident: Incident, candidates: Sequence[DuplicateCandidate], measured: _Found
) -> _Found | None:
    """Return the model's choice; None if it chose none; `measured` if the model failed."""
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE)
    try:
        said = await judge_duplicates(model, request, incident, candidates)
    except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
        log.warning("duplicate without the language model", incident=incident.id, reason=str(error))
        return measured
    if said is None:
        return None
    candidate, probability = said
    return candidate, Evaluation(measured[1].coe, probability), model.name, MODEL_DUPLICATE_VERSION


def _root(incident: Incident, others: Sequence[Incident]) -> Incident:
    """Return the original of a confirmed duplicate, as far as it is visible; otherwise the incident itself."""
    by_id = {other.id: other for other in others}
    seen = {incident.id}
    while (known := by_id.get(incident.duplicate_of)) is not None and known.id not in seen:
        seen.add(known.id)
        incident = known
    return incident


async def suggest_severity(incident: Incident, ports: IncidentPorts, *, history: IncidentHistory) -> Incident:
    """Return the incident with a suggested severity; with none if too few similar incidents are known.

    A severity that a person set is kept, with its suggestion. A rejected suggestion is not repeated.
    """
    if incident.severity_by:
        return incident
    found = await asyncio.to_thread(assess_severity, incident, history)
    if found is None:
        return replace(incident, suggested_severity=None)
    engine, version = ENGINE, SEVERITY_VERSION
    if (
        ports.model is not None
        and (judged := await _judged_severity(ports.model, incident, found, history)) is not None
    ):
        found, engine, version = judged, ports.model.name, MODEL_SEVERITY_VERSION
    prediction_id, badge = await record_prediction(
        PredictionKind.SEVERITY,
        incident.id,
        found.severity,
        found.evaluation,
        ports,
        engine=engine,
        estimator_version=version,
        group=found.severity,
        references=found.references,
    )
    if await is_rejected(prediction_id, ports.store):
        return replace(incident, suggested_severity=None)
    suggestion = SeveritySuggestion(found.severity, found.evidence, badge, prediction_id)
    return replace(incident, suggested_severity=suggestion)


async def _judged_severity(
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
