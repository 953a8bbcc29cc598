"""Estimate the confidence in a claim, and store the claim with everything that its badge is computed from."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace

import structlog

from core.confidence.calibrator import PROBABLE, UNPROVEN, WORDLESS, Scale, badge_for
from core.confidence.measures import LATEST
from core.confidence.model_estimator import VERSION, Claim, Effort, Reference, admissible, estimate
from core.model.badge import Badge, Estimator, Evaluation, Prediction, PredictionKind
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from core.ports import LanguageModel, Store
from core.rca.cause_candidates import FINDING_VERSION
from core.rca.cause_candidates import VERSION as CAUSE_VERSION
from handlers.common.ports import Ports

Claimed = tuple[Estimator, Evaluation]
EVEN_ODDS = 0.5
EFFORTS = {
    Urgency.PERSON: Effort(analyses=1, analysis_tokens=128, reference_tokens=1_500),
    Urgency.INCIDENT: Effort(),
    Urgency.BACKGROUND: Effort(analyses=8),
}
"""Fewer analyses are averaged when a person is waiting."""
DEADLINES = {Urgency.PERSON: 8.0, Urgency.INCIDENT: 60.0, Urgency.BACKGROUND: 300.0}  # seconds for the whole estimate

log = structlog.get_logger()


async def record_prediction(
    kind: PredictionKind,
    subject: str,
    value: str,
    evaluation: Evaluation,
    ports: Ports,
    *,
    engine: str,
    estimator_version: str,
    group: str = "",
    references: tuple[str, ...] = (),
    hop: int = 0,
) -> tuple[str, Badge]:
    """Store a claim about a question or an incident. Returns its id and its badge.

    The id is derived from kind, subject, engine and hop, so a step that runs twice after a crash stores one prediction
    and shows the first badge. A run with another value or estimator version stores a new prediction, because a label
    applies to one value. `hop` is the number of reassignments before the claim, and separates claims about the same
    incident. For `group` and `references`, see Prediction.
    """
    estimator = Estimator(kind, engine, estimator_version)
    async with ports.store.transaction() as transaction:
        calibrator = await transaction.predictions.calibrator(estimator)
        judged = [] if calibrator else await transaction.predictions.verdicts(estimator, LATEST)
        badge = badge_for(evaluation, calibrator, len(judged), group, scale_of(estimator))
        made = Prediction(
            id=f"{kind}:{engine}:{subject}:{hop}" if hop else f"{kind}:{engine}:{subject}",
            kind=kind,
            subject=subject,
            value=value,
            evaluation=evaluation,
            engine=engine,
            estimator_version=estimator_version,
            made_at=ports.clock.now(),
            calibrator_version=calibrator.version if calibrator else None,
            probability=badge.probability,
            group=group,
            references=references,
        )
        while not await transaction.predictions.add(made):
            stored = await transaction.predictions.get(made.id)
            if stored is not None and (stored.value, stored.estimator_version) == (value, estimator_version):
                return made.id, badge_for(stored.evaluation, calibrator, len(judged), stored.group, scale_of(estimator))
            claimed = f"{estimator_version}\0{value}".encode("utf-8", "replace")
            made = replace(made, id=f"{made.id}:{hashlib.blake2b(claimed, digest_size=8).hexdigest()}")
    return made.id, badge


def scale_of(estimator: Estimator) -> Scale:
    """Return the score thresholds of the words that are shown while there is no percentage."""
    if estimator.kind is PredictionKind.ANSWER:
        return WORDLESS
    return PROBABLE if estimator.version in (CAUSE_VERSION, FINDING_VERSION) else UNPROVEN


async def is_likelier(claim: Claimed, instead: Claimed | None, store: Store) -> bool:
    """Return whether, by people's verdicts, a claim is at least as likely to be right as the one shown `instead`.

    If `instead` is None, the claim must be right with at least EVEN_ODDS. Returns True while there are too few verdicts on
    either.
    """
    probability = await _calibrated_probability(*claim, store)
    rival = await _calibrated_probability(*instead, store) if instead else EVEN_ODDS
    return probability is None or rival is None or probability >= rival


async def _calibrated_probability(estimator: Estimator, evaluation: Evaluation, store: Store) -> float | None:
    async with store.transaction() as transaction:
        calibrator = await transaction.predictions.calibrator(estimator)
    return calibrator.probability(evaluation) if calibrator else None


async def estimate_confidence(
    claim: Claim,
    references: Sequence[Reference],
    measured: tuple[Evaluation, str],
    *,
    model: LanguageModel | None,
    urgency: Urgency,
    requester: str,
) -> tuple[Evaluation, str]:
    """Return the two confidence measures and the version of the estimator that produced them.

    Falls back to `measured`, the evidence engine's measures and version, if there is no model, no admissible reference,
    or no usable reply before the deadline. The returned version includes the model's name, because a calibrator is
    fitted per model.
    """
    if model is None or not admissible(references, claim):
        return measured
    request = ModelRequest((), urgency=urgency, requester=requester, deadline=DEADLINES[urgency])
    try:
        async with asyncio.timeout(DEADLINES[urgency]):
            return await estimate(model, claim, references, request, EFFORTS[urgency]), f"{VERSION}:{model.name}"
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        log.warning("confidence without the language model", claim=claim.id, reason=str(error) or "too slow")
        return measured
