"""Suggest that an incident is a duplicate of a known one, with evidence and a badge. A person decides."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from core.model.audience import may_see_incident
from core.model.conversation import Audience, Channel
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import DuplicateSuggestion, Incident
from core.model.language_model import ModelRequest, Urgency
from core.model.prediction import Evaluation, PredictionKind
from core.ports import Clock, LanguageModel, Store
from core.triage.duplicates import (
    CANDIDATES,
    VERSION,
    DuplicateCandidate,
    duplicate_candidates,
    evaluate_duplicate,
)
from core.triage.model_suggestions import DUPLICATE_VERSION, judge_duplicates
from handlers.feedback.accept_suggestion import is_rejected
from handlers.feedback.record_prediction import record_prediction

ENGINE = "evidence"
DEADLINE = 60.0  # seconds for the language model
COMPARED = 200  # latest incidents compared

log = structlog.get_logger()


async def suggest_duplicate(
    incident: Incident,
    *,
    audience: Audience,
    channels: Sequence[Channel],
    dependencies: Mapping[str, tuple[str, ...]],
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
) -> Incident:
    """Return the incident with its probable duplicate, among the incidents that its readers may see.

    If that one is itself a confirmed duplicate, its original is suggested. A confirmed duplicate is kept, a rejected
    suggestion is not repeated, and a merged incident gets none.
    """
    if incident.duplicate_of or incident.absorbed is not None:
        return incident
    async with store.transaction() as transaction:
        recent = await transaction.incidents.recent(COMPARED)
    others = [other for other in recent if may_see_incident(audience, other, channels)]
    ranked = await asyncio.to_thread(duplicate_candidates, incident, others, dependencies)
    candidates = [each for each in ranked if each.convinces][:CANDIDATES]
    if not candidates:
        return replace(incident, suggested_duplicate=None)
    evidence = evaluate_duplicate(incident, candidates[0], [each.score for each in ranked if each is not candidates[0]])
    found = (candidates[0], evidence, ENGINE, VERSION)
    if model is not None:
        judged = await _judged(model, incident, candidates, found)
        if judged is None:
            return replace(incident, suggested_duplicate=None)
        found = judged
    candidate, evaluation, engine, version = found
    known = _root(candidate.incident, others)
    prediction_id, badge = await record_prediction(
        PredictionKind.DUPLICATE,
        incident.id,
        known.id,
        evaluation,
        engine=engine,
        estimator_version=version,
        store=store,
        clock=clock,
    )
    if await is_rejected(prediction_id, store):
        return replace(incident, suggested_duplicate=None)
    suggestion = DuplicateSuggestion(known.id, known.title, candidate.evidence, badge, prediction_id)
    return replace(incident, suggested_duplicate=suggestion)


_Found = tuple[DuplicateCandidate, Evaluation, str, str]  # candidate, evaluation, engine, version


async def _judged(
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
    return candidate, Evaluation(measured[1].coe, probability), model.name, DUPLICATE_VERSION


def _root(incident: Incident, others: Sequence[Incident]) -> Incident:
    """Return the original of a confirmed duplicate, as far as it is visible; otherwise the incident itself."""
    by_id = {other.id: other for other in others}
    seen = {incident.id}
    while (known := by_id.get(incident.duplicate_of)) is not None and known.id not in seen:
        seen.add(known.id)
        incident = known
    return incident
