"""Merge the causes of the evidence engine and of tool outputs into one ranking, each with its contradicting evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from core.knowledge.terms import terms
from core.model.explanation import Evidence, Hypothesis
from core.model.trajectory import Responsibility
from core.rca.cluster.faults import REPAIR
from core.rca.cluster.reading import read
from core.rca.dependencies import callees
from core.rca.failures import responsibility_of
from core.rca.incident_signals import LEEWAY, IncidentSignals, precedes
from core.rca.observations import Observations
from core.rca.signals import CLEAR, Signal
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import Conclusion, conclude

MAX_CONTRADICTING = 3  # lines
EXPLAINS = 0.3  # share of a service's trouble, in [0, 1], that a callee must explain to count against the service
AGREEMENT = 0.5  # share of the distance to 1 that another source's agreement adds to a score
MIN_SCORE = 0.2  # of a cause that is named
MAX_HYPOTHESES = 3
OUTPUT_WEIGHT = 0.8  # of a cause stated by a tool, relative to a fully matching change
EXPLAINED_AWAY = 0.8  # of a cause's score, if the callee that its lines blame has a cause of the same score

_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d+)?\s?(Z|UTC|\+00:00)")

NEXT_CHECKS = {
    Responsibility.PLATFORM: "Check the nodes, volumes, quotas and network that {service} needs.",
    Responsibility.DEPENDENCY: "Check whether the systems that {service} could not reach are up.",
    Responsibility.OWN_CODE: "Compare the version and configuration of {service} with the last ones that worked.",
    Responsibility.USER: "Check which requests {service} refused, and who sent them.",
    None: "Read {source}, starting at the quoted line.",
}


def contradicting(service: str, since: datetime | None, incident_signals: IncidentSignals) -> tuple[Evidence, ...]:
    """Return the evidence against a cause in `service` that began at `since` (None: with the service's own trouble).

    First comes trouble in that service and in the incident's that is older than the cause, because no cause follows its
    effect; then trouble of a callee that would explain that of the service as well.
    """
    older: list[Signal] = []
    if since is not None:
        symptoms = [
            *incident_signals.by_service.get(service, ()),
            *incident_signals.by_service.get(incident_signals.incident.service, ()),
        ]
        older += [signal for signal in _clear(symptoms) if signal.since < since - LEEWAY]
    callee, explained = incident_signals.explained_by(service)
    if explained >= EXPLAINS:
        older += _clear(incident_signals.by_service.get(callee, ()))[:1]
    return tuple(dict.fromkeys(signal.evidence for signal in older))[:MAX_CONTRADICTING]


def _clear(signals: Iterable[Signal]) -> list[Signal]:
    """Return the signs that show trouble on their own, oldest first."""
    clear = [signal for signal in signals if signal.trouble and signal.strength >= CLEAR]
    return sorted(clear, key=lambda signal: signal.since)


def joined(hypotheses: Sequence[Hypothesis], other: Hypothesis, agreement: float) -> tuple[Hypothesis, ...]:
    """Return the hypotheses with a cause from another source, best first.

    If it is about the same service, it supports that one in proportion to `agreement` in [0, 1]; otherwise it is added.
    """
    rival = next((each for each in hypotheses if each.service == other.service), None)
    if rival is None:
        return _ranked([*hypotheses, other])
    raised = replace(
        rival,
        responsibility=rival.responsibility or other.responsibility,
        score=rival.score + AGREEMENT * agreement * (1 - rival.score),
        evidence=(*rival.evidence, *(each for each in other.evidence if each not in rival.evidence)),
    )
    return _ranked([raised, *(each for each in hypotheses if each is not rival)])


def _ranked(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    likely = [each for each in hypotheses if each.score >= MIN_SCORE]
    return tuple(sorted(likely, key=lambda each: -each.score)[:MAX_HYPOTHESES])


def tool_causes(observations: Observations, incident_signals: IncidentSignals) -> list[Hypothesis]:
    """Return the causes found in the tool outputs about each service, best first; empty if they report no trouble."""
    cluster = read(observations.outputs)
    grouped = by_service(observations)
    concluded = {
        service: conclude(
            f"{observations.incident.description}\n{service}", outputs, cluster, service, grouped.keys() - {service}
        )
        for service, outputs in grouped.items()
    }
    conclusions = {service: conclusion for service, conclusion in concluded.items() if conclusion.cause}
    causes = [_cause(service, conclusion, conclusions, incident_signals) for service, conclusion in conclusions.items()]
    return sorted(causes, key=lambda cause: -cause.score)


def by_service(observations: Observations) -> Mapping[str, list[ToolOutput]]:
    """Return the outputs by the service in their arguments; those without one belong to the incident's service."""
    grouped: dict[str, list[ToolOutput]] = {}
    for output in observations.outputs:
        named = (value for value in output.arguments.values() if value in observations.services)
        grouped.setdefault(next(named, observations.incident.service), []).append(output)
    return grouped


def _cause(
    service: str, conclusion: Conclusion, conclusions: Mapping[str, Conclusion], incident_signals: IncidentSignals
) -> Hypothesis:
    times = [at for evidence in conclusion.evidence[:1] if (at := first_time(evidence.quote)) is not None]
    in_time = precedes(min(times), incident_signals.first_sign) if times else 1.0
    explained = _explained(service, conclusion, conclusions, incident_signals)
    elsewhere = incident_signals.incident.service not in ("", service)
    who, next_check = _repair(service, conclusion, elsewhere=elsewhere)
    return Hypothesis(
        cause=conclusion.cause,
        service=service,
        score=OUTPUT_WEIGHT
        * conclusion.score
        * in_time
        * incident_signals.place_weight(service)
        * (1 - EXPLAINED_AWAY * explained),
        evidence=conclusion.evidence,
        disproof=f"{service} is fixed and {incident_signals.incident.service} does not recover."
        if elsewhere
        else f"{conclusion.evidence[0].source} shows the same on a day without an incident.",
        next_check=next_check,
        responsibility=who,
        contradicting=contradicting(service, min(times, default=None), incident_signals),
    )


def _explained(
    service: str, conclusion: Conclusion, conclusions: Mapping[str, Conclusion], incident_signals: IncidentSignals
) -> float:
    """Return how well a callee that the lines name explains them, in [0, 1]: its cause's score relative to this one."""
    words = frozenset(terms("\n".join([conclusion.cause, *(evidence.quote for evidence in conclusion.evidence)])))
    blamed = [
        min(1.0, conclusions[callee].score / conclusion.score)
        for callee in callees(service, incident_signals.dependencies)
        if callee in conclusions and (name := frozenset(terms(callee))) and name <= words
    ]
    return max(blamed, default=0.0)


def _repair(service: str, conclusion: Conclusion, *, elsewhere: bool) -> tuple[Responsibility | None, str]:
    """Return who repairs a cause, as seen from the incident's service, and the next check."""
    check = ""
    if conclusion.findings and (typed := conclusion.findings[0]) is not None:
        who, check = REPAIR[typed.fault]
        check = check.format(name=typed.name, detail=typed.detail)
    else:
        who = responsibility_of(conclusion.cause)
    if elsewhere and who is not Responsibility.PLATFORM:
        who = Responsibility.DEPENDENCY
    return who, check or NEXT_CHECKS[who].format(service=service or "it", source=conclusion.evidence[0].source)


def first_time(text: str) -> datetime | None:
    """Return the first time with a zone in a text; None if it has none, or an invalid one."""
    match = _TIME.search(text)
    if match is None:
        return None
    try:
        return datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    except ValueError:
        return None
