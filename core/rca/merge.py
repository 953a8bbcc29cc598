"""The causes of both engines as one ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.incident import Evidence, Hypothesis
from core.rca.scene import Scene, precedes
from core.rca.trajectory import Finding

AGREEMENT = 0.5  # of what is missing to 1, that a model's agreement adds to a hypothesis of the evidence engine
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
    if not evidence:
        return tuple(hypotheses)
    supported = next((each for each in hypotheses if each.service == finding.service), None)
    if supported is not None:
        raised = replace(
            supported,
            responsibility=supported.responsibility or finding.responsibility,
            score=supported.score + AGREEMENT * votes * (1 - supported.score),
            evidence=(*supported.evidence, *(each for each in evidence if each not in supported.evidence)),
        )
        others = [each for each in hypotheses if each is not supported]
        return _ranked([raised, *others])
    return _ranked([*hypotheses, _hypothesis(finding, evidence, votes, scene)])


def _hypothesis(finding: Finding, evidence: tuple[Evidence, ...], votes: float, scene: Scene) -> Hypothesis:
    times = [each.at for each in evidence if each.at is not None]
    in_time = precedes(min(times), scene.first_sign) if times else 1.0
    return Hypothesis(
        cause=finding.root_cause,
        service=finding.service,
        score=UNCHECKED * votes * in_time * scene.place_weight(finding.service),
        evidence=evidence,
        disproof=f"{finding.service} is put right and {scene.incident.service or 'the incident'} does not recover.",
        next_check=finding.solution,
        responsibility=finding.responsibility,
    )


def _ranked(hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    likely = [each for each in hypotheses if each.score >= MIN_SCORE]
    return tuple(sorted(likely, key=lambda each: -each.score)[:MAX_HYPOTHESES])
