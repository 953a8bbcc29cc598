"""COE and RCE of a proposed owner, from the evidence of the triage (LM-PACE, sections 3.2 and 3.3)."""

from __future__ import annotations

from core.confidence.calibrator import Label
from core.model.prediction import Evaluation
from core.triage.managers import Ground
from core.triage.negotiate import LEARNED_FROM, Verdict
from core.triage.owner_model import OwnerModel

VERSION = "owner-evidence-4"
NEAR = 0.5  # similarity at which a past incident counts as a repetition
OWNERSHIP_INFORMS = 0.5  # contribution of a known owner of the alert's service to the COE
LEARNED_INFORMS = 1.0  # contribution of a model fitted to the history
DOCUMENTS_INFORM = 0.2  # contribution of a matching team document
MONITORING_INFORMS = 0.6  # contribution of a located cause
OBSERVED_INFORMS = 0.3  # contribution of symptoms in a team's own services
CODE_INFORMS = 0.3  # contribution of the owners of failing files


def version_with(embedder: str = "") -> str:
    """Return the version of the estimator. With an embedding model its measures differ, so it is a separate version."""
    return f"{VERSION}:{embedder}" if embedder else VERSION


def evaluate_owner(verdict: Verdict) -> Evaluation:
    """Return the evaluation of a proposed owner.

    COE is how far the grounds can decide at all; RCE is how far they agree on the first candidate. A model learned from
    the history was validated on unseen incidents, so its probability replaces the grounds that it was trained on.
    """
    discussion, grounds = verdict.discussion, verdict.discussion.grounds
    silent = 1 - min(1.0, discussion.similarity / NEAR) * discussion.agreement
    silent *= 1 - LEARNED_INFORMS * (Ground.LEARNED in grounds)
    silent *= 1 - OWNERSHIP_INFORMS * (Ground.OWNERSHIP in grounds)
    silent *= 1 - DOCUMENTS_INFORM * (Ground.DOCUMENT in grounds)
    silent *= 1 - MONITORING_INFORMS * (Ground.MONITORING in grounds)
    silent *= 1 - OBSERVED_INFORMS * (Ground.OBSERVED in grounds)
    silent *= 1 - CODE_INFORMS * (Ground.CODE in grounds)
    learned = Ground.LEARNED in grounds
    support = [_support(ground, verdict) for ground in sorted(grounds) if not (learned and ground in LEARNED_FROM)]
    return Evaluation(coe=1 - silent, rce=sum(support) / len(support) if support else 0.0)


def labels_from(model: OwnerModel) -> list[Label]:
    """Return calibration labels from past incidents that the model was validated on.

    They calibrate the first badges, before anyone has pressed a button.
    """
    return [Label(Evaluation(1.0, held.probability), held.correct, held.owner) for held in model.held_out]


def _support(ground: Ground, verdict: Verdict) -> float:
    """Return the first candidate's share of a ground's scores for it and its strongest rival, in [0, 1]."""
    scores = {
        opinion.team.id: argument.score
        for opinion in verdict.discussion.opinions
        for argument in opinion.arguments
        if argument.ground is ground
    }
    if ground is Ground.LEARNED:
        return scores.get(verdict.candidates[0].team_id, 0.0)
    own = scores.pop(verdict.candidates[0].team_id, 0.0)
    return own / (own + max(scores.values(), default=0.0)) if own else 0.0
