"""Is an incident another sign of a known one: suggested, with the evidence and a badge, and never decided."""

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
DEADLINE = 60.0  # seconds that a language model may take
COMPARED = 200  # latest incidents

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
    """The incident with the one that it is probably another sign of, among those that its readers may see.

    Of one that is itself confirmed as another's sign, that other one. What a person confirmed stands, and what
    was called wrong is not said again; nothing is said of one that is shown as a part of another anyway.
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


_Found = tuple[DuplicateCandidate, Evaluation, str, str]  # with the engine and the version of what measured it


async def _judged(
    model: LanguageModel, incident: Incident, candidates: Sequence[DuplicateCandidate], measured: _Found
) -> _Found | None:
    """Return the model's choice, None if it chose none; the most similar one by measure if the model did not answer."""
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
    """The incident that one is confirmed to be another sign of, as far as it may be seen; else itself."""
    by_id = {other.id: other for other in others}
    seen = {incident.id}
    while (known := by_id.get(incident.duplicate_of)) is not None and known.id not in seen:
        seen.add(known.id)
        incident = known
    return incident
