"""Let a language model rank the causes that the evidence engine names, in two constrained calls.

In RCAgent (sections 3 and 3.4), a controller takes up to fifteen actions, and ten endings are sampled. With a 1.5 B
model, that took 572 s for an incident and ended in the cause of a past one, although the evidence engine's plan had
read all data. Here the model reads that evidence and chooses; the controller (`core/rca/agent/controller.py`) is for tools
that the plan cannot call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.model.explanation import Evidence, Hypothesis
from core.model.language_model import ModelRequest
from core.model.past_incident import SimilarIncident
from core.model_calls.choice import choose, weighed
from core.model_calls.prompts.incidents import choose_cause
from core.model_calls.prompts.quoted import Named
from core.ports import LanguageModel
from core.rca.observations import Observations

QUOTES = 4  # lines for a cause, and lines against it, that a model reads
PAST = 3  # past incidents that a model reads
LEAST = 0.02  # minimum probability that none of the causes is right


async def ranked_by_model(
    hypotheses: Sequence[Hypothesis],
    observations: Observations,
    model: LanguageModel,
    request: ModelRequest,
    right: float,
    first: float,
) -> tuple[Hypothesis, ...]:
    """Return two or more hypotheses, ranked by the evidence and the model's choice.

    The model chooses twice, the second time from the reverse order, so that a choice by the place in the list, or at random,
    counts less. The scores become probabilities, with a rest for none of them. `first` is the probability that the first
    one is right, as the evidence engine is calibrated; the others share the rest by their scores, which rank but are no
    probabilities. `right` is the model's skill, in [0, 1]; `request` gives requester, urgency and deadline. Raises the
    errors of the port.
    """
    forth = await _distribution(hypotheses, observations, model, request)
    *back, none = await _distribution(hypotheses[::-1], observations, model, request)
    distribution = [(first + second) / 2 for first, second in zip(forth, (*back[::-1], none), strict=True)]
    scores = [each.score for each in hypotheses]
    others = [*scores[1:], max(LEAST, 1.0 - sum(scores))]
    odds = weighed(distribution, [first, *((1.0 - first) * each / sum(others) for each in others)], right)
    ranked = [replace(each, score=share) for each, share in zip(hypotheses, odds, strict=False)]
    return tuple(sorted(ranked, key=lambda each: -each.score))


async def _distribution(
    hypotheses: Sequence[Hypothesis], observations: Observations, model: LanguageModel, request: ModelRequest
) -> list[float]:
    """Return the probability, by the model, of each of the hypotheses in the order of the prompt, and of none of them."""
    names = [_name(each, number) for number, each in enumerate(hypotheses, start=1)]
    named = [Named(name, _described(each)) for name, each in zip(names, hypotheses, strict=True)]
    past = [_past(each) for each in observations.similar[:PAST]]
    return await choose(model, request, choose_cause(past, situation(observations), named), names)


def situation(observations: Observations) -> str:
    """Return a description of the incident without any conclusions."""
    incident = observations.incident
    lines = (incident.description, f"Service: {incident.service}" if incident.service else "")
    return "\n".join((*filter(None, lines), f"Since {incident.started_at:%Y-%m-%d %H:%M} UTC"))


def _name(hypothesis: Hypothesis, number: int) -> str:
    """Return a short name that begins with a unique letter, so that one token identifies it."""
    blamed = hypothesis.change
    what = blamed.name if blamed else hypothesis.subject or hypothesis.service or "the system itself"
    return f"{chr(ord('A') + number - 1)}: {what[:60]}"


def _described(hypothesis: Hypothesis) -> str:
    parts = [hypothesis.cause, *_quotes("For", hypothesis.evidence), *_quotes("Against", hypothesis.contradicting)]
    if hypothesis.seconds_to_first_sign is not None:
        parts.insert(1, f"It came {hypothesis.seconds_to_first_sign / 60:.0f} minutes before the first sign.")
    return "\n".join(parts)


def _quotes(label: str, evidence: Sequence[Evidence]) -> list[str]:
    return [
        f"{label}: {f'{each.at:%H:%M} ' if each.at else ''}{each.source}: {' '.join(each.quote.split())[:160]}"
        for each in evidence[:QUOTES]
    ]


def _past(similar: SimilarIncident) -> str:
    return f"{similar.id}: {similar.title}. Its cause then: {similar.root_cause or 'unknown'}"
