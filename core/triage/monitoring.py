"""Monitoring data in triage (Triangle, section 3.3): the located cause, and the trouble in each team's own services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from core.knowledge.terms import terms
from core.model.incident import Incident
from core.model.team import Team
from core.ports import Change
from core.rca.dependencies import callees, service_of
from core.rca.incident_signals import IncidentSignals
from core.rca.observations import Observations
from core.rca.signals import Signal, combined

MAX_TEXT = 1_000  # characters of evidence that are added to the incident's text
MAX_SIGNS = 3  # strongest signs that are quoted
MAX_CHANGES = 2  # latest changes that are quoted
MAX_QUOTE = 160  # characters
# Factor for signs in a caller, which is mostly a victim, or in a service that only shares words with the incident.
LESS_LIKELY = 0.5
MIN_WORD = 4  # letters of a shared word
EARLIER = timedelta(minutes=15)  # before an incident, in which related trouble of a caller begins


@dataclass(frozen=True, slots=True)
class Enrichment:
    """Team Information Enrichment (Triangle, section 3.3).

    `services` maps a service to the strength, in [0, 1], with which monitoring locates the cause in it. `text` quotes
    its logs and changes; untrusted. `observed` maps a service to the strength, in [0, 1], of trouble that begins there
    according to its own team's monitoring.
    """

    services: Mapping[str, float] = field(default_factory=dict[str, float])
    text: str = ""
    observed: Mapping[str, float] = field(default_factory=dict[str, float])


def from_explanation(incident: Incident, dependencies: Mapping[str, tuple[str, ...]]) -> Enrichment:
    """Return the enrichment by an incident's explanation; empty as long as no cause is known.

    A cause in a service that the incident's service neither is nor depends on changes no owner: what was found there is
    another incident, or a load that the owner has to see first.
    """
    explanation = incident.findings.explanation
    if explanation is None or explanation.cause is None:
        return Enrichment()
    services = {*dependencies, *(callee for called in dependencies.values() for callee in called)}
    below = {incident.service, *callees(incident.service, dependencies)}
    if incident.service in services and explanation.cause.service in services - below:
        return Enrichment()
    # Scores are probabilities, shared with causes that are not shown. The shares among the shown ones locate the cause.
    total = sum(hypothesis.score for hypothesis in explanation.hypotheses) or 1.0
    strengths: dict[str, float] = {}
    for hypothesis in explanation.hypotheses:
        strengths[hypothesis.service] = strengths.get(hypothesis.service, 0.0) + hypothesis.score / total
    quotes = [explanation.cause.cause, *(evidence.quote for evidence in explanation.cause.evidence)]
    return Enrichment(strengths, "\n".join(quotes)[:MAX_TEXT])


@dataclass(frozen=True, slots=True)
class TeamFinding:
    """A team's monitoring. `services` maps its services to the strength, in (0, 1], of trouble that begins there.

    Trouble that a callee's earlier trouble explains begins elsewhere, and trouble that is unrelated to the incident
    does not count. `text` quotes the logs and changes; untrusted.
    """

    services: Mapping[str, float] = field(default_factory=dict[str, float])
    text: str = ""


def finding_of(
    team: Team, incident: Incident, observations: Observations, incident_signals: IncidentSignals
) -> TeamFinding:
    """Return the finding of a team's manager in its own services.

    Trouble is related to the incident if the incident's service depends on the team's or, unless it began long before,
    vice versa, or if it shares words with the incident.
    """
    own = [service for service in observations.services if service in team.services]
    service = service_of(incident, observations.dependencies)
    connected = _connected(service, observations.dependencies)
    below = {service, *callees(service, observations.dependencies)}
    words = frozenset(word for word in terms(incident.description) if len(word) >= MIN_WORD)

    def related(sign: Signal) -> bool:
        is_recent = sign.service in below or sign.since >= incident.started_at - EARLIER
        return sign.trouble and is_recent and (sign.service in connected or bool(words & sign.terms))

    signs = {each: [sign for sign in incident_signals.by_service.get(each, ()) if related(sign)] for each in own}
    arising = {
        each: combined(signals) * (1 - incident_signals.explained_by(each)[1]) * (1.0 if each in below else LESS_LIKELY)
        for each, signals in signs.items()
    }
    strongest = sorted((sign for signals in signs.values() for sign in signals), key=lambda sign: -sign.strength)
    changes = [
        change
        for change in reversed(observations.changes)
        if set(change.touched) & set(own)
        and (set(change.touched) & below or change.at >= incident.started_at - EARLIER)
        and (connected & set(change.touched) or words & set(terms(_text_of(change))))
    ]
    quotes = [sign.evidence.quote[:MAX_QUOTE] for sign in strongest[:MAX_SIGNS]]
    quotes += [_text_of(change) for change in changes[:MAX_CHANGES]]
    return TeamFinding({each: strength for each, strength in arising.items() if strength > 0}, "\n".join(quotes))


def _connected(service: str, dependencies: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the service with its direct and indirect callees and callers; empty for an unknown service."""
    if not service:
        return frozenset()
    callers = (other for other in dependencies if service in callees(other, dependencies))
    return frozenset({service, *callees(service, dependencies), *callers})


def _text_of(change: Change) -> str:
    return " ".join([change.title[:MAX_QUOTE], *change.files])[: 2 * MAX_QUOTE]
