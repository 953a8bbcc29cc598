"""What a negotiation by a language model comes to: an owner and its rivals, and how sure one may be of it."""

from __future__ import annotations

from collections import Counter

from core.confidence.owner_evidence import evaluate_owner
from core.model.incident import TeamScore
from core.model.prediction import Evaluation
from core.triage.managers import TriageEvidence
from core.triage.model_negotiation import Negotiation
from core.triage.negotiate import Verdict

VERSION = "owner-votes-1"


def candidates_of(negotiation: Negotiation, evidence: TriageEvidence) -> tuple[TeamScore, ...]:
    """The teams of the last round with their share of its votes, and the reasons of those who voted for them."""
    last = negotiation.last
    counted = Counter(vote.choice for vote in last)
    reasons = {
        team: tuple(vote.reason for vote in last if vote.choice == team and vote.reason) for team in negotiation.ranked
    }
    return tuple(
        TeamScore(team, evidence.teams[team].name, counted[team] / len(last), reasons[team])
        for team in negotiation.ranked
    )


def evaluate_votes(candidates: tuple[TeamScore, ...], verdict: Verdict) -> Evaluation:
    """COE: as the evidence engine measured it, since the managers judge the same references. RCE: the share of votes."""
    return Evaluation(evaluate_owner(verdict).coe, candidates[0].score)
