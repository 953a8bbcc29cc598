"""The causes of both engines, and of what tools say, as one ranking, each with what speaks against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from core.knowledge.terms import terms
from core.model.incident import Evidence, Hypothesis
from core.model.trajectory import Finding, Responsibility
from core.rca.dependencies import callees
from core.rca.failures import responsibility_of
from core.rca.observations import Observations
from core.rca.scene import SLACK, Scene, precedes
from core.rca.signals import CLEAR, Signal
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import Conclusion, conclude

MAX_CONTRADICTING = 3  # lines
EXPLAINS = 0.3  # how well a callee has to explain a service's trouble, in [0, 1], to speak against the service
AGREEMENT = 0.5  # of what is missing to 1, that another source's agreement adds to a hypothesis
UNCHECKED = 0.6  # score of a model's cause for which all speaks: no plan has looked for it
MIN_SCORE = 0.2  # of a cause that is named at all
MAX_HYPOTHESES = 3
OUTPUT_WEIGHT = 0.8  # of a cause that a tool states outright, against a change that fits wholly
EXPLAINED_AWAY = 0.8  # of a cause's score, when the callee that its lines complain of has as sure a cause of its own

_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d+)?\s?(Z|UTC|\+00:00)")

NEXT_CHECKS = {
    Responsibility.PLATFORM: "Look at the nodes, volumes, quotas and network that {service} needs.",
    Responsibility.DEPENDENCY: "Check from {service} that what it could not reach answers.",
    Responsibility.OWN_CODE: "Compare the version and configuration of {service} with the last ones that worked.",
    Responsibility.USER: "Look at the requests that {service} refused, and at who sends them.",
    None: "Read {source} from the quoted line on.",
}


def contradicting(service: str, since: datetime | None, scene: Scene) -> tuple[Evidence, ...]:
    """Lines that do not fit a cause in `service` which began at `since` (None: when its own trouble did).

    First the trouble in the service and in the incident's own that is older than the cause, since no cause follows its
    effect; then the trouble of a callee that would explain that of the service as well.
    """
    found: list[Signal] = []
    if since is not None:
        symptoms = [*scene.signals.get(service, ()), *scene.signals.get(scene.incident.service, ())]
        found += [signal for signal in _clear(symptoms) if signal.since < since - SLACK]
    callee, explained = scene.explained_by(service)
    if explained >= EXPLAINS:
        found += _clear(scene.signals.get(callee, ()))[:1]
    return tuple(dict.fromkeys(signal.evidence for signal in found))[:MAX_CONTRADICTING]


def _clear(signals: Iterable[Signal]) -> list[Signal]:
    """The signs that alone show trouble, the oldest first."""
    clear = [signal for signal in signals if signal.trouble and signal.strength >= CLEAR]
    return sorted(clear, key=lambda signal: signal.since)


def merged(
    hypotheses: Sequence[Hypothesis], finding: Finding, evidence: tuple[Evidence, ...], votes: float, scene: Scene
) -> tuple[Hypothesis, ...]:
    """The evidence engine's hypotheses and the model's finding, best first.

    `evidence` is what of the finding's is grounded; without any the finding is not shown. `votes` in [0, 1] is the share
    of the samples that named the same service. A finding about the service of a hypothesis supports that hypothesis;
    another one stands beside them, lower the later its evidence is and the less plausible its place.
    """
    return joined(hypotheses, _hypothesis(finding, evidence, votes, scene), votes) if evidence else tuple(hypotheses)


def joined(hypotheses: Sequence[Hypothesis], other: Hypothesis, agreement: float) -> tuple[Hypothesis, ...]:
    """The hypotheses with a cause from another source, best first.

    One about the same service supports the hypothesis, the more the higher `agreement` in [0, 1]; else it stands beside.
    """
    known = next((each for each in hypotheses if each.service == other.service), None)
    if known is None:
        return _ranked([*hypotheses, other])
    raised = replace(
        known,
        responsibility=known.responsibility or other.responsibility,
        score=known.score + AGREEMENT * agreement * (1 - known.score),
        evidence=(*known.evidence, *(each for each in other.evidence if each not in known.evidence)),
    )
    return _ranked([raised, *(each for each in hypotheses if each is not known)])


def _hypothesis(finding: Finding, evidence: tuple[Evidence, ...], votes: float, scene: Scene) -> Hypothesis:
    """A finding as a cause; evidence from after the first sign shows what followed, and speaks against it."""
    times = [each.at for each in evidence if each.at is not None]
    in_time = precedes(min(times), scene.first_sign) if times else 1.0
    late = tuple(each for each in evidence if each.at is not None and each.at > scene.first_sign + SLACK)
    against = contradicting(finding.service, min(times, default=None), scene)
    return Hypothesis(
        cause=finding.root_cause,
        service=finding.service,
        score=UNCHECKED * votes * in_time * scene.place_weight(finding.service),
        evidence=tuple(each for each in evidence if each not in late) or evidence,
        disproof=f"{finding.service} is fixed and {scene.incident.service or 'the incident'} does not recover.",
        next_check=finding.solution,
        responsibility=finding.responsibility,
        contradicting=tuple(dict.fromkeys((*(late if len(late) < len(evidence) else ()), *against))),
    )


def _ranked(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    likely = [each for each in hypotheses if each.score >= MIN_SCORE]
    return tuple(sorted(likely, key=lambda each: -each.score)[:MAX_HYPOTHESES])


def tool_causes(observations: Observations, scene: Scene) -> list[Hypothesis]:
    """The cause that the outputs about each service show, best first; none where nothing in them complains."""
    concluded = {
        service: conclude(f"{observations.incident.description}\n{service}", outputs)
        for service, outputs in by_service(observations).items()
    }
    known = {service: found for service, found in concluded.items() if found.cause}
    causes = [_cause(service, found, known, scene) for service, found in known.items()]
    return sorted(causes, key=lambda cause: -cause.score)


def by_service(observations: Observations) -> Mapping[str, list[ToolOutput]]:
    """The outputs by the service that was asked about; those that name none are about the incident's own."""
    found: dict[str, list[ToolOutput]] = {}
    for output in observations.outputs:
        asked = (value for value in output.arguments.values() if value in observations.services)
        found.setdefault(next(asked, observations.incident.service), []).append(output)
    return found


def _cause(service: str, found: Conclusion, known: Mapping[str, Conclusion], scene: Scene) -> Hypothesis:
    times = [at for evidence in found.evidence[:1] if (at := first_time(evidence.quote)) is not None]
    in_time = precedes(min(times), scene.first_sign) if times else 1.0
    explained = _explained(service, found, known, scene)
    elsewhere = scene.incident.service not in ("", service)
    who = _responsible(found, elsewhere=elsewhere)
    return Hypothesis(
        cause=found.cause,
        service=service,
        score=OUTPUT_WEIGHT * found.score * in_time * scene.place_weight(service) * (1 - EXPLAINED_AWAY * explained),
        evidence=found.evidence,
        disproof=f"{service} is fixed and {scene.incident.service} does not recover."
        if elsewhere
        else f"{found.evidence[0].source} says the same on a day without an incident.",
        next_check=NEXT_CHECKS[who].format(service=service or "it", source=found.evidence[0].source),
        responsibility=who,
        contradicting=contradicting(service, min(times, default=None), scene),
    )


def _explained(service: str, found: Conclusion, known: Mapping[str, Conclusion], scene: Scene) -> float:
    """Return how well a callee that the lines name explains them, in [0, 1]: its own cause, against this one."""
    said = frozenset(terms("\n".join([found.cause, *(evidence.quote for evidence in found.evidence)])))
    blamed = [
        min(1.0, known[callee].score / found.score)
        for callee in callees(service, scene.dependencies)
        if callee in known and (name := frozenset(terms(callee))) and name <= said
    ]
    return max(blamed, default=0.0)


def _responsible(found: Conclusion, *, elsewhere: bool) -> Responsibility | None:
    said = responsibility_of(found.cause)
    if elsewhere:
        return Responsibility.PLATFORM if said is Responsibility.PLATFORM else Responsibility.DEPENDENCY
    return said


def first_time(text: str) -> datetime | None:
    """The first time with a zone in a text; None if it has none, or one that does not exist."""
    found = _TIME.search(text)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        return None
