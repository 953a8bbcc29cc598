"""The sureness of a written answer, by further replies and by the analyses of LM-PACE, if the server has free slots.

None of it may cost the answer: what is not ready in time, or fails, is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from core.answering.composed.evidence import CitedSentence, NumberedPassages
from core.answering.model_text import wording
from core.confidence.model_estimator import Claim, Effort, Reference, estimate
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.prompts import composing as prompts
from core.ports import LanguageModel

SAMPLES = 3  # further replies and analyses, if they can be generated concurrently
SAMPLED_AT = 0.7  # temperature of the replies
AGREES = 0.5  # share of a sentence's terms in another reply from which that reply agrees
ANALYSIS_TOKENS = 128
VERDICT_TOKENS = 4  # room for yes or no
RESERVED = 0.2  # of the deadline, which is left for what follows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """An answer: the claims that passed the rules, and the request that they were written for.

    `query` was asked at `asked_at`. `ends_at` is the end of the deadline by the clock of the event loop.
    """

    query: str
    asked_at: datetime
    evidence: NumberedPassages
    claims: tuple[CitedSentence, ...]
    writing: ModelRequest
    ends_at: float


@dataclass(frozen=True, slots=True)
class Sureness:
    """The share of replies that agree with the first sentence, and the model's rating of the answer (LM-PACE, RCE).

    Both are 1 if they are not known. `coe` is how probable it is that the passages answer, None if that is not known.
    """

    agreement: float = 1.0
    rating: float = 1.0
    coe: float | None = None


async def sureness_of(written: Written, model: LanguageModel, abilities: Abilities) -> Sureness:
    """Return how sure the answer is, as far as the server's abilities and the time allow."""
    if abilities.parallel <= SAMPLES:
        return Sureness(coe=await in_time(_coe(written, model), written) if abilities.odds else None)
    if not abilities.odds:
        agreement = await in_time(_agreement(written, model), written)
        return Sureness(1.0 if agreement is None else agreement)
    agreement, judged = await asyncio.gather(
        in_time(_agreement(written, model), written), in_time(_judged(written, model), written)
    )
    agreement = 1.0 if agreement is None else agreement
    return Sureness(agreement, judged.rce, judged.coe) if judged else Sureness(agreement)


async def in_time(call: Coroutine[Any, Any, T], written: Written) -> T | None:
    """Return the result; None if the model fails or the call takes too long."""
    try:
        async with asyncio.timeout_at(written.ends_at - RESERVED * written.writing.deadline):
            return await call
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError):
        return None


async def _agreement(written: Written, model: LanguageModel) -> float:
    """Return the share of replies, the shown one included, that say what the first sentence says."""
    sampled = replace(written.writing, temperature=SAMPLED_AT, seed=written.writing.seed + 1)
    replies = await model.sample(sampled, SAMPLES)
    terms = wording(next(claim.text for claim in written.claims if claim.numbers))
    agreeing = sum(len(terms & wording(reply.text)) >= AGREES * len(terms) for reply in replies)
    return (1 + agreeing) / (1 + len(replies))


async def _coe(written: Written, model: LanguageModel) -> float:
    """Return how probable it is that the passages answer, by one yes or no (LM-PACE, section 4.2, without analyses)."""
    asking = prompts.suffices(written.evidence.shown, written.query)
    verdict = await model.expect(
        replace(written.writing, messages=asking, max_tokens=VERDICT_TOKENS), (prompts.YES, prompts.NO)
    )
    return verdict[prompts.YES]


async def _judged(written: Written, model: LanguageModel) -> Evaluation:
    """Return COE and RCE after analyses (LM-PACE, sections 4.2 and 4.3); the passages are the references, cited ones first."""
    cited = {number for claim in written.claims for number in claim.numbers}
    passages = sorted(written.evidence.passages.items(), key=lambda each: each[0] not in cited)
    room = min(Effort().reference_tokens, await model.context_tokens() // 2)
    return await estimate(
        model,
        Claim("", written.query, "\n".join(claim.text for claim in written.claims), written.asked_at),
        [Reference(passage.document_id, passage.text) for _, passage in passages],
        written.writing,
        Effort(SAMPLES, ANALYSIS_TOKENS, room),
    )
