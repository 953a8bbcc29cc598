"""Fit calibrators from labelled outcomes (nightly), and adopt one only if it is better on labels that it has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from core.confidence.calibrator import Label, fit
from core.model.calibrator import Calibrator
from core.model.prediction import Estimator, Outcome, Prediction
from core.ports import Clock, Store

FOLDS = 5
NEW_LABELS = 10  # since the current calibrator was fitted; fewer cannot show which of two is better


async def recalibrate(*, store: Store, clock: Clock) -> None:
    """Refit every estimator on its own labels."""
    async with store.transaction() as transaction:
        estimators = await transaction.predictions.estimators()
    for estimator in estimators:
        await refit(estimator, store=store, clock=clock)


async def refit(estimator: Estimator, *, store: Store, clock: Clock) -> Calibrator | None:
    """Refit one estimator. Returns the adopted calibrator; None if labels are too few or the current one is as good."""
    async with store.transaction() as transaction:
        labelled = await transaction.predictions.labelled(estimator)
        current = await transaction.predictions.calibrator(estimator)
    now = clock.now()
    version = f"{estimator.kind}:{estimator.engine}:{estimator.version}:{now:%Y%m%dT%H%M%S}"
    # In a thread: fitting takes seconds, and must block neither the event loop nor the database.
    better = await asyncio.to_thread(_better, labelled, current, version, now)
    if better is not None:
        async with store.transaction() as transaction:
            await transaction.predictions.adopt(estimator, better)
    return better


def _better(
    labelled: Sequence[tuple[Prediction, Outcome]], current: Calibrator | None, version: str, now: datetime
) -> Calibrator | None:
    if current is None:
        return fit([_label(*pair) for pair in labelled], version, now)
    seen = [_label(*pair) for pair in labelled if pair[1].labelled_at <= current.fitted_at]
    new = [_label(*pair) for pair in labelled if pair[1].labelled_at > current.fitted_at]
    if len(new) < NEW_LABELS or not _improves(seen, new, current):
        return None
    return fit([*seen, *new], version, now)


def _improves(seen: Sequence[Label], new: Sequence[Label], current: Calibrator) -> bool:
    """Return whether a refit has a lower cross-validated Brier score on the new labels than the current calibrator.

    Only labels newer than the current calibrator are held out, because it was fitted on the older ones.
    """
    candidate_error = current_error = 0.0
    for fold in range(FOLDS):
        known = [label for index, label in enumerate(new) if index % FOLDS != fold]
        held_out = [label for index, label in enumerate(new) if index % FOLDS == fold]
        candidate = fit([*seen, *known], current.version, current.fitted_at)
        if candidate is None:
            return False
        candidate_error += _squared_error(candidate, held_out)
        current_error += _squared_error(current, held_out)
    return candidate_error < current_error


def _label(prediction: Prediction, outcome: Outcome) -> Label:
    return Label(prediction.evaluation, outcome.correct, prediction.group)


def _squared_error(calibrator: Calibrator, labels: Sequence[Label]) -> float:
    return sum((calibrator.probability(label.evaluation, label.group) - label.correct) ** 2 for label in labels)
