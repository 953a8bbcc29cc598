"""The causes of both engines, and of what tools say, as one ranking, each with what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from core.model.incident import Evidence, Hypothesis
from core.model.trajectory import Finding
from core.rca.scene import SLACK, Scene, precedes
from core.rca.signals import CLEAR, Signal

MAX_CONTRADICTING = 3  # lines
EXPLAINS = 0.3  # how well a callee has to explain a service's trouble, in [0, 1], to speak against the service


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


AGREEMENT = 0.5  # of what is missing to 1, that another source's agreement adds to a hypothesis
UNCHECKED = 0.6  # score of a model's cause for which all speaks: no plan has looked for it
MIN_SCORE = 0.2  # of a cause that is named at all
MAX_HYPOTHESES = 3


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
    """What of the evidence is later than the first sign shows what followed, and speaks against the finding."""
    times = [each.at for each in evidence if each.at is not None]
    in_time = precedes(min(times), scene.first_sign) if times else 1.0
    late = tuple(each for each in evidence if each.at is not None and each.at > scene.first_sign + SLACK)
    against = contradicting(finding.service, min(times, default=None), scene)
    return Hypothesis(
        cause=finding.root_cause,
        service=finding.service,
        score=UNCHECKED * votes * in_time * scene.place_weight(finding.service),
        evidence=tuple(each for each in evidence if each not in late) or evidence,
        disproof=f"{finding.service} is put right and {scene.incident.service or 'the incident'} does not recover.",
        next_check=finding.solution,
        responsibility=finding.responsibility,
        contradicting=tuple(dict.fromkeys((*(late if len(late) < len(evidence) else ()), *against))),
    )


def _ranked(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    likely = [each for each in hypotheses if each.score >= MIN_SCORE]
    return tuple(sorted(likely, key=lambda each: -each.score)[:MAX_HYPOTHESES])
