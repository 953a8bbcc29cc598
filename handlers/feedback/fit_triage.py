"""Fit the owner model from past incidents (nightly), and the first calibrators of the owner's and the severity's badge."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from core.confidence.calibrator import fit
from core.confidence.calibrator import fit as fit_calibrator
from core.model.errors import ModelUnavailable
from core.model.past_incident import PastIncident
from core.model.prediction import Estimator, PredictionKind
from core.model.team import Team
from core.ports import Clock, Embedder, LearnedStore, Store
from core.triage.history import IncidentHistory
from core.triage.negotiate import labels_from, version_with
from core.triage.owner_model import OwnerModel, learned_from, training_incidents
from core.triage.suggestions import SEVERITY_VERSION, severity_labels
from core.triage.text_similarity import Embeddings
from handlers.incidents.triage_incident import ENGINE, embed_past_incidents

Fit = Callable[[Sequence[PastIncident], Embeddings | None], Awaitable[OwnerModel | None]]

log = structlog.get_logger()


async def fit_triage(
    past: Sequence[PastIncident],
    *,
    teams: Sequence[Team],
    models: LearnedStore[OwnerModel],
    fit: Fit,
    store: Store,
    clock: Clock,
    embedder: Embedder | None = None,
) -> bool:
    """Fit and save the owner model. Returns False, and keeps the current model, if there is too little to learn from.

    With an `embedder`, the model also learns from embeddings; vectors that the current model holds are reused.

    If no owner has been judged yet, the first calibrator is fitted on the incidents that the model was validated on.
    This is skipped if those incidents name services that a team owns: ownership then contributes to the proposal, and
    only labels show how accurate the combination is.
    """
    incidents = training_incidents(past, teams)
    model = await fit(incidents, await _embedded(incidents, models, embedder) if embedder else None)
    if model is None:
        return False
    await models.save(model)
    owned = {service for team in teams for service in team.services}
    if not any(incident.service in owned for incident in incidents):
        await _calibrate(model, store, clock)
    return True


async def _embedded(
    incidents: Sequence[PastIncident], models: LearnedStore[OwnerModel], embedder: Embedder
) -> Embeddings | None:
    """Return the embeddings of the training incidents; None if the embedding model fails."""
    before = await models.load()
    embeddings = before.embedding.embeddings if before and before.embedding else None
    try:
        return await embed_past_incidents(await asyncio.to_thread(learned_from, incidents), embedder, embeddings)
    except ModelUnavailable as error:
        log.warning("owners_learned_without_embedding", error=str(error))
        return None


async def _calibrate(model: OwnerModel, store: Store, clock: Clock) -> None:
    measured_by, now = version_with(model.embedding.embedder if model.embedding else ""), clock.now()
    estimator = Estimator(PredictionKind.OWNER, ENGINE, measured_by)
    async with store.transaction() as transaction:
        if await transaction.predictions.calibrator(estimator) is not None:
            return
        first = fit_calibrator(labels_from(model), f"{estimator.kind}:{ENGINE}:{measured_by}:{now:%Y%m%dT%H%M%S}", now)
        if first is not None:
            await transaction.predictions.adopt(estimator, first)


async def fit_severity(history: IncidentHistory, *, store: Store, clock: Clock) -> None:
    """Adopt a first calibrator if there is none yet and the history is long enough.

    Each past incident is judged by the incidents before it. Runs in a thread, because a long history takes seconds.
    """
    estimator, now = Estimator(PredictionKind.SEVERITY, ENGINE, SEVERITY_VERSION), clock.now()
    async with store.transaction() as transaction:
        if await transaction.predictions.calibrator(estimator) is not None:
            return
    labels = await asyncio.to_thread(severity_labels, history)
    first = await asyncio.to_thread(
        fit, labels, f"{estimator.kind}:{ENGINE}:{SEVERITY_VERSION}:{now:%Y%m%dT%H%M%S}", now
    )
    if first is not None:
        async with store.transaction() as transaction:
            await transaction.predictions.adopt(estimator, first)
