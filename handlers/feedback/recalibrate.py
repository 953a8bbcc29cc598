"""Nightly: fit a calibrator from the labelled outcomes, and adopt it only if it is better on labels it has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from core.confidence.calibrator import Calibrator, Label, fit
from core.model.prediction import Estimator, Outcome, Prediction
from core.ports import Clock, Store

FOLDS = 5
NEW_LABELS = 10  # since the calibrator in use was fitted; fewer cannot tell which of two is better


async def recalibrate(*, store: Store, clock: Clock) -> None:
    """Look at every estimator, each on its own labels."""
    async with store.transaction() as transaction:
        estimators = await transaction.predictions.estimators()
    for estimator in estimators:
        await refit(estimator, store=store, clock=clock)


async def refit(estimator: Estimator, *, store: Store, clock: Clock) -> Calibrator | None:
    """The calibrator that was adopted, None if there are too few labels or the one in use is as good."""
    async with store.transaction() as transaction:
        labelled = await transaction.predictions.labelled(estimator)
        current = await transaction.predictions.calibrator(estimator)
    now = clock.now()
    version = f"{estimator.kind}:{estimator.engine}:{estimator.version}:{now:%Y%m%dT%H%M%S}"
    # In a thread: fitting takes seconds, in which nobody else must wait for the loop or the database.
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
    """Return whether a fit that also knows the other new labels has a lower Brier score on each part of the new ones.

    Only labels that came after the calibrator in use are held out: those before it has seen.
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
