"""COE and RCE of a proposed owner, from the triage's own evidence (LM-PACE, sections 3.2 and 3.3)."""

from __future__ import annotations

from core.confidence.prediction import Evaluation
from core.triage.managers import Ground
from core.triage.negotiate import Verdict

VERSION = "owner-evidence-1"
NEAR = 0.5  # similarity from which a past incident counts as the same again
OWNERSHIP_INFORMS = 0.5  # how far knowing the alert's service alone can decide
DOCUMENTS_INFORM = 0.2  # how far a fitting team document alone can decide
MONITORING_INFORMS = 0.6  # how far a located cause alone can decide


def evaluate_owner(verdict: Verdict) -> Evaluation:
    """COE: whether the references can decide at all. RCE: how far they agree on the first candidate."""
    discussion, grounds = verdict.discussion, verdict.discussion.grounds
    silent = 1 - min(1.0, discussion.similarity / NEAR) * discussion.agreement
    silent *= 1 - OWNERSHIP_INFORMS * (Ground.OWNERSHIP in grounds)
    silent *= 1 - DOCUMENTS_INFORM * (Ground.DOCUMENT in grounds)
    silent *= 1 - MONITORING_INFORMS * (Ground.MONITORING in grounds)
    first, second = ([candidate.score for candidate in verdict.candidates] + [0.0, 0.0])[:2]
    return Evaluation(coe=1 - silent, rce=max(0.0, min(1.0, (first + first - second) / 2)) if first else 0.0)
