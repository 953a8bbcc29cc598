"""Compare the finding of a language model that used tools (`core/rca/agent/controller.py`) with the evidence engine's causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.findings import BlamedChange, Evidence, Hypothesis, Origin
from core.model.language_model import Finding, Trajectory
from core.model_calls.choice import weighed
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


LEAST = 0.02  # minimum probability that none of the causes is right


def situation(observations: Observations) -> str:
    """Return a description of the incident without any conclusions."""
    incident = observations.incident
    service = f"Service: {incident.service}" if incident.service else ""
    return "\n".join(
        (*filter(None, (incident.description, service)), f"Since {incident.started_at:%Y-%m-%d %H:%M} UTC")
    )
