"""COE and RCE estimated by a language model in two steps (LM-PACE, sections 4.1 to 4.3).

The author of the claim is a black box: only the text of the conclusion is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean

from core.model.badge import Evaluation
from core.model.errors import PromptTooLong
from core.model.findings import PastIncident
from core.model.language_model import ModelRequest
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

VERSION = "model-evidence-1"  # of the prompts and the parsing; stored with every prediction
LABEL_TOKENS = 8  # enough for one label in quotation marks


@dataclass(frozen=True, slots=True)
class Reference:
    """A document or past incident that a claim is judged by. `text` tells what happened and how it ended. Untrusted."""

    id: str
    text: str
    settled_at: datetime | None = None


def settled_case(incident: PastIncident) -> Reference:
    """Return a past incident as a reference: description, owner, cause and fix."""
    parts = (
        ("", f"{incident.title}\n{incident.description}"),
        ("Service: ", incident.service),
        ("Owner: ", incident.owner),
        ("Root cause: ", incident.root_cause),
        ("Fix: ", incident.fix),
    )
    text = "\n".join(f"{label}{value}" for label, value in parts if value.strip())
    return Reference(incident.id, text, incident.resolved_at or incident.started_at)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim to be judged: a conclusion (answer, owner or cause) about a situation (a question or an incident)."""

    id: str
    situation: str
    conclusion: str
    made_at: datetime


def admissible(references: Iterable[Reference], claim: Claim) -> list[Reference]:
    """Return the references that may judge a claim, in order: not the case itself, nor one settled after the claim."""
    return [
        reference
        for reference in references
        if reference.id != claim.id and (reference.settled_at is None or reference.settled_at < claim.made_at)
    ]


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of model work. Defaults follow the paper (section 5.1), which does not give k₁.

    The score after an analysis is the expectation over the label probabilities, not a mean of k₂ samples as in the paper.
    """

    analyses: int = 4  # k₁ and k₁′
    analysis_tokens: int = 256
    reference_tokens: int = 3_896  # L


async def estimate(
    model: LanguageModel, claim: Claim, references: Sequence[Reference], request: ModelRequest, effort: Effort
) -> Evaluation:
    """Return both measures in [0, 1]: the probability of yes, and the mean rating mapped from 1–5 to 0–1.

    `references` are sorted by similarity, best first. `request` gives the urgency and the requester; its messages are
    replaced. Without references, both measures are 0 and the model is not called. Raises PromptTooLong if the first
    reference exceeds the budget, InvalidReply, and the errors of the port.
    """
    judging = admissible(references, claim)
    if not judging:
        return Evaluation(0.0, 0.0)
    texts = await _within_budget(model, [reference.text for reference in judging], effort)
    if not texts:
        raise PromptTooLong(
            f"Reference {judging[0].id} alone exceeds the limit of {effort.reference_tokens} tokens per claim."
        )
    enough = _Question(prompts.coe_analysis(texts, claim.situation), prompts.coe_score, prompts.YES_NO)
    supports = _Question(
        prompts.rce_analysis(texts, claim.situation, claim.conclusion), prompts.rce_score, prompts.SCALE
    )
    coe = await _judged(model, enough, request, effort)
    return Evaluation(coe[prompts.SETTLED], mean_rating(await _judged(model, supports, request, effort)))


@dataclass(frozen=True, slots=True)
class _Question:
    """An analysis prompt, and the labels that are chosen from after it."""

    analysis: prompts.Messages
    score: Callable[[prompts.Messages, str], prompts.Messages]
    choices: tuple[str, ...]


async def _within_budget(model: LanguageModel, texts: Sequence[str], effort: Effort) -> list[str]:
    """Return the longest prefix of the texts within the token budget (section 4.1)."""
    kept: list[str] = []
    left = effort.reference_tokens
    for text in texts:
        left -= await model.count_tokens(text)
        if left < 0:
            break
        kept.append(text)
    return kept


async def _judged(model: LanguageModel, question: _Question, request: ModelRequest, effort: Effort) -> dict[str, float]:
    """Return the mean label distribution over all analyses."""
    sampled = replace(request, messages=question.analysis, temperature=1.0, max_tokens=effort.analysis_tokens)
    analyses = await model.sample(sampled, effort.analyses)
    distributions = await asyncio.gather(
        *(
            model.expect(
                replace(sampled, messages=question.score(question.analysis, analysis.text), max_tokens=LABEL_TOKENS),
                question.choices,
            )
            for analysis in analyses
        )
    )
    return {choice: fmean(distribution[choice] for distribution in distributions) for choice in question.choices}


def mean_rating(distribution: Mapping[str, float]) -> float:
    """Return the mean rating, with the lowest mapped to 0 and the highest to 1."""
    top = len(prompts.SCALE) - 1
    return sum(place / top * distribution[rating] for place, rating in enumerate(prompts.SCALE))
