"""Learn each night: fit the owner model from past incidents, and calibrators from labelled outcomes, and check for drift.

A new calibrator is adopted only if it is better on labels that it has not seen, or the first one with thresholds, which
`by_thresholds` asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import structlog

from core.confidence.calibrator import THRESHOLD_OUTCOMES, Label, fit
from core.confidence.measures import LATEST, RECENT, measure_drift, with_percentage
from core.model.badge import Calibrator, Estimator, Outcome, Prediction, PredictionKind
from core.model.conversation import Place
from core.model.errors import ModelUnavailable
from core.model.findings import PastIncident
from core.model.messages import DriftAlarm
from core.model.team import Team
from core.ports import Clock, Embedder, LearnedStore, Store
from core.triage.negotiate import labels_from, version_with
from core.triage.owner_model import Embeddings, OwnerModel, learned_from, training_incidents
from handlers.common.ports import Ports
from handlers.incidents.hold_incident import wait_for_morning
from handlers.incidents.triage_incident import ENGINE, embed_past_incidents

FOLDS = 5
NEW_LABELS = 10  # since the current calibrator was fitted; fewer cannot show which of two is better


log = structlog.get_logger()


async def recalibrate(*, store: Store, clock: Clock, by_thresholds: bool = False) -> None:
    """Refit every estimator on its own labels."""
    async with store.transaction() as transaction:
        estimators = await transaction.predictions.estimators()
    for estimator in estimators:
        await refit(estimator, store=store, clock=clock, by_thresholds=by_thresholds)


async def refit(estimator: Estimator, *, store: Store, clock: Clock, by_thresholds: bool = False) -> Calibrator | None:
    """Refit one estimator. Returns the adopted calibrator; None if labels are too few or the current one is as good."""
    async with store.transaction() as transaction:
        labelled = await transaction.predictions.labelled(estimator)
        current = await transaction.predictions.calibrator(estimator)
    now = clock.now()
    version = f"{estimator.kind}:{estimator.engine}:{estimator.version}:{now:%Y%m%dT%H%M%S}"
    # In a thread: fitting takes seconds, and must block neither the event loop nor the database.
    better = await asyncio.to_thread(_better, labelled, current, version, now, by_thresholds=by_thresholds)
    if better is not None:
        async with store.transaction() as transaction:
            await transaction.predictions.adopt(estimator, better)
    return better


def _better(
    labelled: Sequence[tuple[Prediction, Outcome]],
    current: Calibrator | None,
    version: str,
    now: datetime,
    *,
    by_thresholds: bool,
) -> Calibrator | None:
    if current is None or (by_thresholds and current.outcomes < THRESHOLD_OUTCOMES <= len(labelled)):
        return fit([_label(*pair) for pair in labelled], version, now, by_thresholds=by_thresholds)
    seen = [_label(*pair) for pair in labelled if pair[1].labelled_at <= current.fitted_at]
    new = [_label(*pair) for pair in labelled if pair[1].labelled_at > current.fitted_at]
    if len(new) < NEW_LABELS or not _improves(seen, new, current, by_thresholds=by_thresholds):
        return None
    return fit([*seen, *new], version, now, by_thresholds=by_thresholds)


def _improves(seen: Sequence[Label], new: Sequence[Label], current: Calibrator, *, by_thresholds: bool) -> bool:
    """Return whether a refit has a lower cross-validated Brier score on the new labels than the current calibrator.

    Only labels newer than the current calibrator are held out, because it was fitted on the older ones.
    """
    gain = 0.0
    for fold in range(FOLDS):
        training = [label for index, label in enumerate(new) if index % FOLDS != fold]
        held_out = [label for index, label in enumerate(new) if index % FOLDS == fold]
        candidate = fit([*seen, *training], current.version, current.fitted_at, by_thresholds=by_thresholds)
        if candidate is None:
            return False
        gain += _squared_error(current, held_out) - _squared_error(candidate, held_out)
    return gain > 0


def _label(prediction: Prediction, outcome: Outcome) -> Label:
    return Label(prediction.evaluation, outcome.correct, prediction.group)


def _squared_error(calibrator: Calibrator, labels: Sequence[Label]) -> float:
    return sum((calibrator.probability(label.evaluation, label.group) - label.correct) ** 2 for label in labels)


async def watch_calibration(ports: Ports, *, operators: Place | None) -> None:
    """Check every estimator, and post at most one alarm per estimator and day.

    Without `operators`, the alarm appears only in the log and on the local page. Raises QuietNow during the quiet hours
    of the operators' channel.
    """
    async with ports.store.transaction() as transaction:
        estimators = await transaction.predictions.estimators()
    for estimator in estimators:
        async with ports.store.transaction() as transaction:
            verdicts = tuple(await transaction.predictions.verdicts(estimator, LATEST))
        drift = await asyncio.to_thread(measure_drift, verdicts)
        if drift is None or not drift.alarming:
            continue
        log.warning("calibration drifted", estimator=str(estimator), error=drift.error, limit=drift.limit)
        if operators is not None:
            await wait_for_morning(operators, ports)
            intent = f"drift:{estimator.kind}:{estimator.engine}:{estimator.version}:{ports.clock.now():%Y-%m-%d}"
            alarm = DriftAlarm(estimator, drift, *with_percentage(verdicts, RECENT))
            await ports.poster.post_once(intent, operators, alarm)


Fit = Callable[[Sequence[PastIncident], Embeddings | None], Awaitable[OwnerModel | None]]


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
        first = fit(labels_from(model), f"{estimator.kind}:{ENGINE}:{measured_by}:{now:%Y%m%dT%H%M%S}", now)
        if first is not None:
            await transaction.predictions.adopt(estimator, first)
