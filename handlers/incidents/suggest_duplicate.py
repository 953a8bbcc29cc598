"""Suggest that an incident is a duplicate of a known one, with evidence and a badge. A person decides."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.model.audience import may_see_incident
from core.model.conversation import Audience, Channel
from core.model.incident import DuplicateSuggestion, Incident
from core.model.prediction import PredictionKind
from core.ports import Clock, Store
from core.triage.duplicates import VERSION, duplicate_candidates, evaluate_duplicate
from handlers.feedback.accept_suggestion import is_rejected
from handlers.feedback.record_prediction import record_prediction

ENGINE = "evidence"
COMPARED = 200  # latest incidents compared


async def suggest_duplicate(
    incident: Incident,
    *,
    audience: Audience,
    channels: Sequence[Channel],
    dependencies: Mapping[str, tuple[str, ...]],
    store: Store,
    clock: Clock,
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
    candidate = next((each for each in ranked if each.convinces), None)
    if candidate is None:
        return replace(incident, suggested_duplicate=None)
    evaluation = evaluate_duplicate(incident, candidate, [each.score for each in ranked if each is not candidate])
    known = _root(candidate.incident, others)
    prediction_id, badge = await record_prediction(
        PredictionKind.DUPLICATE,
        incident.id,
        known.id,
        evaluation,
        engine=ENGINE,
        estimator_version=VERSION,
        store=store,
        clock=clock,
    )
    if await is_rejected(prediction_id, store):
        return replace(incident, suggested_duplicate=None)
    suggestion = DuplicateSuggestion(known.id, known.title, candidate.evidence, badge, prediction_id)
    return replace(incident, suggested_duplicate=suggestion)


def _root(incident: Incident, others: Sequence[Incident]) -> Incident:
    """Return the original of a confirmed duplicate, as far as it is visible; otherwise the incident itself."""
    by_id = {other.id: other for other in others}
    seen = {incident.id}
    while (known := by_id.get(incident.duplicate_of)) is not None and known.id not in seen:
        seen.add(known.id)
        incident = known
    return incident
