"""COE and RCE of a named cause, from the investigation's own evidence (LM-PACE, sections 3.2 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from core.confidence.prediction import Evaluation
from core.incident import Hypothesis
from core.rca.observations import Observations
from core.rca.scene import Scene

VERSION = "cause-evidence-3"
FAILED_TOOL_WEIGHT = 0.5  # of what could be known, that is left when a tool could not be read


def evaluate_cause(hypotheses: Sequence[Hypothesis], scene: Scene, observations: Observations) -> Evaluation:
    """COE: whether logs or other outputs of tools, metrics, changes, and a sign of trouble were there to decide with.

    RCE: the chance of the first cause. `hypotheses` are the named ones, best first, at least one.
    """
    service = observations.incident.service
    known = (
        any(line.service == service for line in observations.logs) or bool(observations.outputs or observations.builds),
        any(series.service == service for series in observations.series),
        bool(observations.changes),
        bool(scene.signals or observations.outputs or observations.builds),
    )
    coe = sum(known) / len(known) * (FAILED_TOOL_WEIGHT if observations.unavailable else 1.0)
    return Evaluation(coe=coe, rce=hypotheses[0].score)
