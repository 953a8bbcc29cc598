"""Check recent badges for calibration drift (nightly), and alert the operators with a reliability diagram."""

from __future__ import annotations

import asyncio

import structlog

from core.confidence.measures import RECENT, measure_drift
from core.model.conversation import Place
from core.model.messages import DriftAlarm
from core.model.prediction import Estimator
from core.ports import Clock, Store
from handlers.incidents.keep_quiet import wait_for_morning
from handlers.questions.post_message import Poster

log = structlog.get_logger()


async def watch_calibration(*, operators: Place | None, store: Store, poster: Poster, clock: Clock) -> None:
    """Check every estimator, and post at most one alarm per estimator and day.

    Without `operators`, the alarm appears only in the log and on the local page. Raises QuietNow during the quiet hours
    of the operators' channel.
    """
    async with store.transaction() as transaction:
        estimators = await transaction.predictions.estimators()
    for estimator in estimators:
        alarm = await _alarm(estimator, store)
        if alarm is None:
            continue
        log.warning("calibration drifted", estimator=str(estimator), error=alarm.drift.error, limit=alarm.drift.limit)
        if operators is not None:
            await wait_for_morning(operators, store=store, clock=clock)
            intent = f"drift:{estimator.kind}:{estimator.engine}:{estimator.version}:{clock.now():%Y-%m-%d}"
            await poster.post_once(intent, operators, alarm)


async def _alarm(estimator: Estimator, store: Store) -> DriftAlarm | None:
    async with store.transaction() as transaction:
        labelled = await transaction.predictions.labelled(estimator)
    # Probabilities as they were shown, whichever calibrator produced them. Claims without a percentage are left out.
    shown = [(made.probability, outcome.correct) for made, outcome in labelled if made.probability is not None][
        -RECENT:
    ]
    probabilities, correct = tuple(each[0] for each in shown), tuple(each[1] for each in shown)
    drift = await asyncio.to_thread(measure_drift, probabilities, correct)
    if drift is None or not drift.alarming:
        return None
    return DriftAlarm(estimator, drift, probabilities, correct)
