"""Confidence estimation: a two-step model estimate, or the evidence engine's own measures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from core.confidence.model_estimator import VERSION, Claim, Effort, Reference, admissible, estimate
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from core.model.prediction import Evaluation
from core.ports import LanguageModel

EFFORTS = {
    Urgency.PERSON: Effort(analyses=1, analysis_tokens=128, reference_tokens=1_500),
    Urgency.INCIDENT: Effort(),
    Urgency.BACKGROUND: Effort(analyses=8),
}
"""Fewer analyses are averaged when a person is waiting."""

DEADLINES = {Urgency.PERSON: 8.0, Urgency.INCIDENT: 60.0, Urgency.BACKGROUND: 300.0}  # seconds for the whole estimate

log = structlog.get_logger()


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
