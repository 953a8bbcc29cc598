"""Nightly: fit a calibrator from the labelled outcomes, and adopt it only if it is better on labels it has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from core.confidence.calibrator import Calibrator, fit
from core.confidence.prediction import Evaluation, PredictionKind
from core.ports import Clock, Store

FOLDS = 5


async def recalibrate(*, store: Store, clock: Clock) -> None:
    """Look at every kind of prediction and every engine, each on its own labels."""
    for kind in PredictionKind:
        async with store.transaction() as transaction:
            engines = await transaction.predictions.engines(kind)
        for engine in engines:
            await refit(kind, engine, store=store, clock=clock)


async def refit(kind: PredictionKind, engine: str, *, store: Store, clock: Clock) -> Calibrator | None:
    """The calibrator that was adopted, None if there are too few labels or the one in use is as good."""
    async with store.transaction() as transaction:
        labelled = [
            (prediction.evaluation, outcome.correct)
            for prediction, outcome in await transaction.predictions.labelled(kind, engine)
        ]
        current = await transaction.predictions.calibrator(kind, engine)
    now = clock.now()
    # In a thread: fitting takes seconds, in which nobody else must wait for the loop or the database.
    better = await asyncio.to_thread(_better, labelled, current, f"{kind}:{engine}:{now:%Y%m%dT%H%M%S}", now)
    if better is not None:
        async with store.transaction() as transaction:
            await transaction.predictions.adopt(kind, engine, better)
    return better


def _better(
    labelled: Sequence[tuple[Evaluation, bool]], current: Calibrator | None, version: str, now: datetime
) -> Calibrator | None:
    candidate = fit(labelled, version, now)
    if candidate is None or (current is not None and not _improves(labelled, current, candidate)):
        return None
    return candidate


def _improves(labelled: Sequence[tuple[Evaluation, bool]], current: Calibrator, candidate: Calibrator) -> bool:
    """Whether a fit on the other folds has a lower mean Brier score on the held-out fold than the one in use."""
    if candidate.outcomes <= current.outcomes:
        return False
    held_out_error = current_error = 0.0
    for fold in range(FOLDS):
        training = [pair for index, pair in enumerate(labelled) if index % FOLDS != fold]
        test = [pair for index, pair in enumerate(labelled) if index % FOLDS == fold]
        fitted = fit(training, candidate.version, candidate.fitted_at)
        if fitted is None:
            return False
        held_out_error += _squared_error(fitted, test)
        current_error += _squared_error(current, test)
    return held_out_error < current_error


def _squared_error(calibrator: Calibrator, labelled: Sequence[tuple[Evaluation, bool]]) -> float:
    return sum((calibrator.probability(evaluation) - correct) ** 2 for evaluation, correct in labelled)
