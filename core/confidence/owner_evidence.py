"""COE and RCE of a proposed owner, from the triage's own evidence (LM-PACE, sections 3.2 and 3.3)."""

from __future__ import annotations

from core.confidence.calibrator import Label
from core.model.prediction import Evaluation
from core.triage.managers import Ground
from core.triage.negotiate import LEARNED_FROM, Verdict
from core.triage.owner_model import OwnerModel

VERSION = "owner-evidence-4"
NEAR = 0.5  # similarity from which a past incident counts as the same again
OWNERSHIP_INFORMS = 0.5  # how far knowing the alert's service alone can decide
LEARNED_INFORMS = 1.0  # how far a model fitted to the history can decide
DOCUMENTS_INFORM = 0.2  # how far a fitting team document alone can decide
MONITORING_INFORMS = 0.6  # how far a located cause alone can decide
OBSERVED_INFORMS = 0.3  # how far trouble in a team's own services alone can decide
CODE_INFORMS = 0.3  # how far the owners of failing files alone can decide


def version_with(embedder: str = "") -> str:
    """Of the estimator, which is another one with the vectors of an embedding model: its figures are other ones."""
    return f"{VERSION}:{embedder}" if embedder else VERSION


def evaluate_owner(verdict: Verdict) -> Evaluation:
    """COE: whether the references can decide at all. RCE: how far they agree on the first candidate.

    A model that learned from the history was checked on incidents that it had not seen: it can decide, and its
    probability stands for the history and the documents that it learned from.
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
    """Labels as `evaluate_owner` would have earned them on past incidents that the model had not seen.

    With them the first badge is calibrated before anyone has pressed a button.
    """
    return [Label(Evaluation(1.0, held.probability), held.correct, held.owner) for held in model.held_out]


def _support(ground: Ground, verdict: Verdict) -> float:
    """The first candidate's share of what a ground gives to it and to its strongest rival there, in [0, 1]."""
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
