"""Fit the first severity calibrator from past incidents (nightly), until labels from people and closed incidents exist."""

from __future__ import annotations

import asyncio

from core.confidence.calibrator import fit
from core.model.prediction import Estimator, PredictionKind
from core.ports import Clock, Store
from core.triage.history import IncidentHistory
from core.triage.severity import VERSION, severity_labels
from handlers.incidents.suggest_severity import ENGINE


async def fit_severity(history: IncidentHistory, *, store: Store, clock: Clock) -> None:
    """Adopt a first calibrator if there is none yet and the history is long enough.

    Each past incident is judged by the incidents before it. Runs in a thread, because a long history takes seconds.
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
