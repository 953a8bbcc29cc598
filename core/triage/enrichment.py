"""What monitoring adds to an incident's text: where the fault was seen, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.model.incident import Explanation

MAX_TEXT = 1_000  # characters of evidence that are added to the incident's text


@dataclass(frozen=True, slots=True)
class Enrichment:
    """Team Information Enrichment (Triangle, section 3.3).

    `services` maps a service to the strength, in [0, 1], with which monitoring locates the cause in it. `text` is
    what its logs and changes say; it is untrusted. `observed` maps services to how sure their own team's monitoring
    is, in [0, 1], that trouble arises there.
    """

    services: Mapping[str, float] = field(default_factory=dict[str, float])
    text: str = ""
    observed: Mapping[str, float] = field(default_factory=dict[str, float])


def from_explanation(explanation: Explanation | None) -> Enrichment:
    """Nothing, as long as no culprit is known."""
    if explanation is None or explanation.cause is None:
        return Enrichment()
    # Scores are chances, shared with causes that are not shown: among those that are, their shares locate the cause.
    total = sum(hypothesis.score for hypothesis in explanation.hypotheses) or 1.0
    strengths: dict[str, float] = {}
    for hypothesis in explanation.hypotheses:
        strengths[hypothesis.service] = strengths.get(hypothesis.service, 0.0) + hypothesis.score / total
    quotes = [explanation.cause.cause, *(evidence.quote for evidence in explanation.cause.evidence)]
    return Enrichment(strengths, "\n".join(quotes)[:MAX_TEXT])
