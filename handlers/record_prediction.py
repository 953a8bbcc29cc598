"""Every claim is stored with all that its badge is made from, before anybody sees it."""

from __future__ import annotations

from core.confidence.badge import Badge
from core.confidence.calibrator import badge_for
from core.confidence.prediction import Evaluation, Prediction, PredictionKind
from core.ports import Clock, Store


async def record_prediction(
    kind: PredictionKind,
    subject: str,
    value: str,
    evaluation: Evaluation,
    *,
    engine: str,
    estimator_version: str,
    store: Store,
    clock: Clock,
) -> tuple[str, Badge]:
    """Store a claim about a question or an incident; returns its id and its badge.

    The id follows from kind, subject and engine, so that a step that runs twice after a crash makes one prediction.
    """
    prediction_id = f"{kind}:{engine}:{subject}"
    async with store.transaction() as transaction:
        calibrator = await transaction.predictions.calibrator(kind, engine)
        outcomes = 0 if calibrator else await transaction.predictions.count_labelled(kind, engine)
        badge = badge_for(evaluation, calibrator, outcomes)
        await transaction.predictions.add(
            Prediction(
                id=prediction_id,
                kind=kind,
                subject=subject,
                value=value,
                evaluation=evaluation,
                engine=engine,
                estimator_version=estimator_version,
                made_at=clock.now(),
                calibrator_version=calibrator.version if calibrator else None,
                probability=badge.probability,
            )
        )
    return prediction_id, badge
