"""What tools say in free text about each service, as causes: weighed by place and time like every other one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from core.knowledge.terms import terms
from core.model.incident import Hypothesis
from core.model.trajectory import Responsibility
from core.rca.dependencies import callees
from core.rca.failures import responsibility_of
from core.rca.merge import contradicting
from core.rca.observations import Observations
from core.rca.scene import Scene, precedes
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import Conclusion, conclude

OUTPUT_WEIGHT = 0.8  # of a cause that a tool states outright, against a change that fits wholly
EXPLAINED_AWAY = 0.8  # of a cause's score, when the callee that its lines complain of has as sure a cause of its own

_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d+)?\s?(Z|UTC|\+00:00)")

NEXT_CHECKS = {
    Responsibility.PLATFORM: "Look at the nodes, volumes, quotas and network that {service} needs.",
    Responsibility.DEPENDENCY: "Check from {service} that what it could not reach answers.",
    Responsibility.OWN_CODE: "Compare the version and configuration of {service} with the last ones that worked.",
    Responsibility.USER: "Look at the requests that {service} refused, and at who sends them.",
    None: "Read on in {source} from the quoted line.",
}


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
        disproof=f"{service} is put right and {scene.incident.service} does not recover."
        if elsewhere
        else f"{found.evidence[0].source} says the same on a day without an incident.",
        next_check=NEXT_CHECKS[who].format(service=service or "it", source=found.evidence[0].source),
        responsibility=who,
        contradicting=contradicting(service, min(times, default=None), scene),
    )


def _explained(service: str, found: Conclusion, known: Mapping[str, Conclusion], scene: Scene) -> float:
    """How well a callee that the lines name explains them, in [0, 1]: its own cause, against this one."""
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
