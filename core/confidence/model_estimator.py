"""COE and RCE asked of a language model in two steps (LM-PACE, sections 4.1 to 4.3).

The claim's author is a black box: only the text of its conclusion is used.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from statistics import fmean

from core.model.errors import InvalidReply, PromptTooLong
from core.model.incident import PastIncident
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.prompts import confidence as prompts
from core.ports import LanguageModel

VERSION = "model-evidence-1"  # of the prompts and of what is made of the replies: stored with every prediction
LABEL_TOKENS = 8  # room for one label in quotation marks


@dataclass(frozen=True, slots=True)
class Reference:
    """`id` is the document's or incident's; `text` says what happened and how it ended. Untrusted."""

    id: str
    text: str
    settled_at: datetime | None = None


def settled_case(incident: PastIncident) -> Reference:
    """A past incident as a reference: what happened, whose it was, why, and what ended it."""
    parts = (
        ("", f"{incident.title}\n{incident.description}"),
        ("Service: ", incident.service),
        ("Owner: ", incident.owner),
        ("Root cause: ", incident.root_cause),
        ("Fix: ", incident.fix),
    )
    text = "\n".join(f"{label}{said}" for label, said in parts if said.strip())
    return Reference(incident.id, text, incident.resolved_at or incident.started_at)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim to be judged: a conclusion (answer, owner or cause) about a situation (a question or an incident)."""

    id: str
    situation: str
    conclusion: str
    made_at: datetime


def admissible(references: Iterable[Reference], claim: Claim) -> list[Reference]:
    """The references that may judge a claim, in order: neither the case itself nor one settled after it was made."""
    return [
        reference
        for reference in references
        if reference.id != claim.id and (reference.settled_at is None or reference.settled_at < claim.made_at)
    ]


class Scoring(StrEnum):
    """How the mean score after an analysis is found."""

    EXPECTATION = "expectation"  # exactly, from the probabilities of the labels
    SAMPLES = "samples"  # as in the paper: the mean of `samples` drawn labels


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is asked. The defaults are the paper's where it names them (section 5.1); it does not name k₁ and k₂."""

    analyses: int = 4  # k₁ and k₁′
    samples: int = 8  # k₂ and k₂′
    analysis_tokens: int = 256
    reference_tokens: int = 3_896  # L
    scoring: Scoring = Scoring.EXPECTATION


async def estimate(
    model: LanguageModel, claim: Claim, references: Sequence[Reference], request: ModelRequest, effort: Effort
) -> Evaluation:
    """Both measures, in [0, 1]: the mean of yes (1) and no (0), and the mean rating from 1 to 5 mapped to 0 to 1.

    `references` are the most similar first. `request` says how urgent it is and for whom; its messages are replaced.
    No references: nothing can be decided, and nothing is asked. Raises PromptTooLong if not even the first fits into the
    budget, what the port raises, and InvalidReply.
    """
    judging = admissible(references, claim)
    if not judging:
        return Evaluation(0.0, 0.0)
    texts = await _within_budget(model, [reference.text for reference in judging], effort)
    if not texts:
        raise PromptTooLong(
            f"Reference {judging[0].id} alone has more than the {effort.reference_tokens} tokens that a claim is judged by."
        )
    enough = _Question(prompts.coe_analysis(texts, claim.situation), prompts.coe_score, prompts.YES_NO)
    supports = _Question(
        prompts.rce_analysis(texts, claim.situation, claim.conclusion), prompts.rce_score, prompts.SCALE
    )
    coe = await _judged(model, enough, request, effort)
    rce = await _judged(model, supports, request, effort)
    return Evaluation(coe[prompts.YES], _mean_rating(rce))


@dataclass(frozen=True, slots=True)
class _Question:
    """An analysis to be made, and the labels that one is chosen from after it."""

    analysis: prompts.Messages
    score: Callable[[prompts.Messages, str], prompts.Messages]
    choices: tuple[str, ...]


async def _within_budget(model: LanguageModel, texts: Sequence[str], effort: Effort) -> list[str]:
    """The longest list of the first texts that has no more than the budget's tokens (section 4.1)."""
    kept: list[str] = []
    left = effort.reference_tokens
    for text in texts:
        left -= await model.count_tokens(text)
        if left < 0:
            break
        kept.append(text)
    return kept


async def _judged(model: LanguageModel, question: _Question, request: ModelRequest, effort: Effort) -> dict[str, float]:
    """The mean distribution of the labels over all analyses."""
    asked = replace(request, messages=question.analysis, temperature=1.0, max_tokens=effort.analysis_tokens)
    analyses = await model.sample(asked, effort.analyses)
    distributions = await asyncio.gather(
        *(
            _distribution(
                model,
                replace(asked, messages=question.score(question.analysis, analysis.text), max_tokens=LABEL_TOKENS),
                question.choices,
                effort,
            )
            for analysis in analyses
        )
    )
    return {choice: fmean(distribution[choice] for distribution in distributions) for choice in question.choices}


async def _distribution(
    model: LanguageModel, request: ModelRequest, choices: Sequence[str], effort: Effort
) -> dict[str, float]:
    if effort.scoring is Scoring.EXPECTATION:
        return await model.expect(request, choices)
    drawn = await model.sample(replace(request, schema={"enum": list(choices)}), effort.samples)
    counts = Counter(_label(model, reply.text, choices) for reply in drawn)
    return {choice: counts[choice] / len(drawn) for choice in choices}


def _label(model: LanguageModel, text: str, choices: Sequence[str]) -> str:
    label = text.strip().strip('"')
    if label not in choices:
        raise InvalidReply(f"{model.name} chose none of {', '.join(choices)}.")
    return label


def _mean_rating(distribution: Mapping[str, float]) -> float:
    """The mean of the scale, its lowest rating mapped to 0 and its highest to 1."""
    top = len(prompts.SCALE) - 1
    return sum(place / top * distribution[rating] for place, rating in enumerate(prompts.SCALE))
