"""Store every claim, with everything that its badge is computed from, before it is shown."""

from __future__ import annotations

import hashlib

from core.confidence.calibrator import PROBABLE, RAW, badge_for
from core.model.badge import Badge
from core.model.prediction import Estimator, Evaluation, Prediction, PredictionKind
from core.ports import Clock, Store
from core.rca.cause_evidence import VERSION as CAUSE_VERSION


async def record_prediction(
    kind: PredictionKind,
    subject: str,
    value: str,
    evaluation: Evaluation,
    *,
    engine: str,
    estimator_version: str,
    group: str = "",
    references: tuple[str, ...] = (),
    hop: int = 0,
    store: Store,
    clock: Clock,
) -> tuple[str, Badge]:
    """Store a claim about a question or an incident. Returns its id and its badge.

    The id is derived from kind, subject, engine and hop, so a step that runs twice after a crash stores one prediction
    and shows the first badge. A run with another value or estimator version stores a new prediction, because a label
    applies to one value. `hop` is the number of reassignments before the claim, and separates claims about the same
    incident. For `group` and `references`, see Prediction.
    """
    estimator = Estimator(kind, engine, estimator_version)
    prediction_id = f"{kind}:{engine}:{subject}:{hop}" if hop else f"{kind}:{engine}:{subject}"
    async with store.transaction() as transaction:
        known = await transaction.predictions.get(prediction_id)
        if known is not None and (known.value, known.estimator_version) != (value, estimator_version):
            prediction_id = f"{prediction_id}:{_digest(estimator_version, value)}"
            known = await transaction.predictions.get(prediction_id)
        if known is not None:
            evaluation, group = known.evaluation, known.group
        calibrator = await transaction.predictions.calibrator(estimator)
        outcomes = 0 if calibrator else await transaction.predictions.count_labelled(estimator)
        scale = PROBABLE if estimator_version == CAUSE_VERSION else RAW
        badge = badge_for(evaluation, calibrator, outcomes, group, scale)
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
                group=group,
                references=references,
            )
        )
    return prediction_id, badge


async def calibrated_probability(estimator: Estimator, evaluation: Evaluation, store: Store) -> float | None:
    """Return the probability that a claim of this estimator is right by people's verdicts; None while there are too few."""
    async with store.transaction() as transaction:
        calibrator = await transaction.predictions.calibrator(estimator)
    return calibrator.probability(evaluation) if calibrator else None


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=8).hexdigest()
