"""Conclude with a language model: rank the causes of the evidence engine in two constrained calls, or beside its own finding.

In RCAgent (sections 3 and 3.4), a controller takes up to fifteen actions, and ten endings are sampled. With a 1.5 B
model, that took 572 s for an incident and ended in the cause of a past one, although the evidence engine's plan had
read all data. Here the model reads that evidence and chooses; the controller (`core/rca/agent/controller.py`) is for tools
that the plan cannot call.

Beside a finding of its own, the causes of the engine are compared with it, and ranked together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.explanation import BlamedChange, Evidence, Hypothesis, Origin
from core.model.language_model import Finding, ModelRequest, Trajectory
from core.model_calls.choice import choose, weighed
from core.model_calls.prompts import Named
from core.model_calls.prompts.incidents import choose_cause
from core.ports import LanguageModel
from core.rca.incident_signals import LEEWAY, IncidentSignals, contradicting, precedes
from core.rca.observations import Observations

MAX_HYPOTHESES = 3
MIN_SCORE = 0.2  # of a cause that is named
SHARED = 2  # words of two causes of a service from which they are one


@dataclass(frozen=True, slots=True)
class MergedCauses:
    """The causes of both engines, best first.

    `dissent` tells whether the first two are those of engines that disagree. `by_model`: the first is the model's.
    """

    hypotheses: tuple[Hypothesis, ...]
    dissent: bool
    by_model: bool


def compared(
    hypotheses: Sequence[Hypothesis],
    trajectory: Trajectory,
    evidence: tuple[Evidence, ...],
    right: float,
    incident_signals: IncidentSignals,
    observations: Observations,
) -> MergedCauses:
    """Return the evidence engine's hypotheses and the model's finding, whose grounded `evidence` is not empty.

    A finding that names the cause of a hypothesis supports it with its quotes and its solution, or takes its place if the
    hypothesis only says where the trouble is. Otherwise both are kept.
    Which comes first follows from the scores of the hypotheses, the share of the samples that name each, and `right`, the
    model's skill in [0, 1], by Bayes' rule.
    """
    finding = trajectory.finding
    if finding is None:
        raise ValueError("A trajectory without a finding cannot be compared.")
    place_named = _naming(finding, hypotheses)
    own = _cause(finding, evidence, trajectory, right, incident_signals, observations)
    if place_named is None and own.score < MIN_SCORE:
        return MergedCauses(tuple(hypotheses), dissent=False, by_model=False)
    if not hypotheses:
        return MergedCauses((own,), dissent=False, by_model=True)
    supported = [_supported(each, own) if place == place_named else each for place, each in enumerate(hypotheses)]
    if place_named == 0:
        return MergedCauses(tuple(supported), dissent=False, by_model=_is_unexplained(hypotheses[0]))
    samples = trajectory.samples or (finding,)
    named = [_naming(each, hypotheses) for each in samples]
    shares = [named.count(place) / len(samples) for place in (*range(len(hypotheses)), None)]
    scores = [each.score for each in hypotheses]
    odds = weighed(shares, [*scores, max(LEAST, 1.0 - sum(scores))], right)
    theirs = supported[place_named] if place_named is not None else own
    is_likelier = odds[place_named if place_named is not None else -1] > odds[0]
    pair = (theirs, supported[0]) if is_likelier else (supported[0], theirs)
    others = (each for place, each in enumerate(supported) if place not in (0, place_named))
    return MergedCauses((*pair, *others)[:MAX_HYPOTHESES], dissent=True, by_model=is_likelier)


def _naming(finding: Finding, hypotheses: Sequence[Hypothesis]) -> int | None:
    """Return the index of the hypothesis with the cause of a finding; None if none has it.

    It has the same change, or no change and the same service, and then knows no reason, or rests on the same lines or says
    the same: a service can have more than one fault.
    """
    for place, each in enumerate(hypotheses):
        blamed = {each.change.id, *each.change.deploys} if each.change else set[str]()
        if finding.change:
            if finding.change in blamed:
                return place
        elif not blamed and each.service == finding.service and (_is_unexplained(each) or _is_alike(finding, each)):
            return place
    return None


def _is_alike(finding: Finding, hypothesis: Hypothesis) -> bool:
    """Return whether a quote of a finding is one of a hypothesis, or their causes share words beside the service."""
    quotes = [" ".join(each.split()) for each in finding.evidence]
    lines = [" ".join(each.quote.split()) for each in hypothesis.evidence]
    if any(quote and (quote in line or line in quote) for quote in quotes for line in lines if line):
        return True
    words = set(terms(hypothesis.cause)) - set(terms(hypothesis.service))
    return len(words.intersection(terms(finding.root_cause))) >= SHARED


def _is_unexplained(hypothesis: Hypothesis) -> bool:
    return hypothesis.origin is Origin.SERVICE


def _without(lines: Sequence[Evidence], others: Sequence[Evidence]) -> tuple[Evidence, ...]:
    quotes = {" ".join(each.quote.split()) for each in others}
    return tuple(each for each in lines if " ".join(each.quote.split()) not in quotes)


def _one_sided(cause: Hypothesis) -> Hypothesis:
    """Return a cause without lines that are both for and against it: they are against it, unless nothing else is for it."""
    evidence = _without(cause.evidence, cause.contradicting) or cause.evidence
    return replace(cause, evidence=evidence, contradicting=_without(cause.contradicting, evidence))


def _supported(hypothesis: Hypothesis, own: Hypothesis) -> Hypothesis:
    """Return a hypothesis with a finding's evidence and solution, or the finding in its place if it knows no reason."""
    if _is_unexplained(hypothesis):
        evidence = (*own.evidence, *_without(hypothesis.evidence, own.evidence))
        return _one_sided(replace(own, evidence=evidence, next_check=hypothesis.next_check))
    return _one_sided(
        replace(
            hypothesis,
            responsibility=hypothesis.responsibility or own.responsibility,
            evidence=(*hypothesis.evidence, *_without(own.evidence, hypothesis.evidence)),
            solution=own.solution,
        )
    )


def _cause(
    finding: Finding,
    evidence: tuple[Evidence, ...],
    trajectory: Trajectory,
    right: float,
    incident_signals: IncidentSignals,
    observations: Observations,
) -> Hypothesis:
    """Return a finding as a cause. Its score is the share of samples that agree, times the model's skill.

    The later the change or evidence and the less plausible the service, the lower the score; evidence from after the first
    sign is an effect, and counts against it.
    """
    change = next((each for each in observations.changes if each.id == finding.change), None)
    began = (
        change.at if change is not None else min((each.at for each in evidence if each.at is not None), default=None)
    )
    in_time = precedes(began, incident_signals.first_sign) if began is not None else 1.0
    late = [each for each in evidence if each.at is not None and each.at > incident_signals.first_sign + LEEWAY]
    effects = [replace(each, source=f"{each.source}, after the first sign") for each in late]
    against = contradicting(finding.service, change.at if change is not None else None, incident_signals)
    place = incident_signals.place_weight(finding.service) if incident_signals.incident.service else 1.0
    return _one_sided(
        Hypothesis(
            cause=finding.root_cause,
            service=finding.service,
            score=trajectory.agreement * right * in_time * place,
            evidence=tuple(each for each in evidence if each not in late) or evidence,
            disproof=finding.disproof
            or f"{finding.service} is fixed and {incident_signals.incident.service or 'the incident'} does not recover.",
            next_check="",
            responsibility=finding.responsibility,
            contradicting=tuple(dict.fromkeys((*(effects if len(late) < len(evidence) else ()), *against))),
            change=BlamedChange(change.id, change.kind, change.title, change.author, change.at, change.touched)
            if change is not None
            else None,
            solution=finding.solution,
            found_by=trajectory.model,
        )
    )


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
    past = [
        f"{each.id}: {each.title}. Its cause then: {each.root_cause or 'unknown'}"
        for each in observations.similar[:PAST]
    ]
    return await choose(model, request, choose_cause(past, situation(observations), named), names)


def situation(observations: Observations) -> str:
    """Return a description of the incident without any conclusions."""
    incident = observations.incident
    service = f"Service: {incident.service}" if incident.service else ""
    return "\n".join(
        (*filter(None, (incident.description, service)), f"Since {incident.started_at:%Y-%m-%d %H:%M} UTC")
    )


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
