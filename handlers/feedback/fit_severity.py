"""Nightly: calibrate the severity's badge by the past incidents, until people and closed incidents say how well it does."""

from __future__ import annotations

import asyncio

from core.confidence.calibrator import fit
from core.model.prediction import Estimator, PredictionKind
from core.ports import Clock, Store
from core.triage.history import IncidentHistory
from core.triage.severity import VERSION, severity_labels
from handlers.incidents.suggest_severity import ENGINE


async def fit_severity(history: IncidentHistory, *, store: Store, clock: Clock) -> None:
    """The first calibrator, where there is none yet and the history is long enough for one.

    Each past incident is judged by those before it. In a thread: it takes seconds for a long history.
    """
    estimator, now = Estimator(PredictionKind.SEVERITY, ENGINE, VERSION), clock.now()
    async with store.transaction() as transaction:
        if await transaction.predictions.calibrator(estimator) is not None:
            return
    labels = await asyncio.to_thread(severity_labels, history)
    first = await asyncio.to_thread(fit, labels, f"{estimator.kind}:{ENGINE}:{VERSION}:{now:%Y%m%dT%H%M%S}", now)
    if first is not None:
        async with store.transaction() as transaction:
            await transaction.predictions.adopt(estimator, first)
