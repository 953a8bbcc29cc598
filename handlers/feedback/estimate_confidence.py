"""How sure may we be: asked of the language model in two steps, or left as the evidence engine measured it."""

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
"""Somebody who waits is not kept waiting for a mean over many analyses."""

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
    """The two measures and the version of the estimator that made them.

    `measured` is what the evidence engine made of it, and stands where there is no model, nothing to judge by, or no
    usable reply in time. The version names the model, whose habits a calibrator learns.
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
