"""Let a language model decide between the teams whose managers have voted, in one constrained call.

It ends a negotiation of agents that agreed on nobody (`core/triage/agents`), and is all that is asked of a model that finds
better than it writes: the managers then report the evidence for their own team (`core/triage/managers.py`,
`core/triage/negotiate.py`), and a decider that belongs to no team has the remaining vote.
"""

from __future__ import annotations

from dataclasses import replace

from core.model.findings import TeamScore, Vote
from core.model.incident import Incident
from core.model.language_model import ModelRequest
from core.model_calls.choice import NONE, choose, weighed
from core.model_calls.prompts.incidents import choose_owner
from core.model_calls.prompts.quoted import Named
from core.ports import LanguageModel
from core.triage.managers import TriageEvidence
from core.triage.negotiate import Verdict, may_be_named

VERSION = "owner-choice-1"  # of the prompt and the weighting; stored with every prediction
PAST = 3  # past incidents that a model reads
DOCUMENT = 400  # characters read of a team's document


async def decided_by_model(
    verdict: Verdict,
    evidence: TriageEvidence,
    incident: Incident,
    monitoring: str,
    model: LanguageModel,
    request: ModelRequest,
    right: float,
) -> Verdict:
    """Return the verdict with its candidates ranked by the evidence and the model's choice, which is added as a vote.

    An owner is named by the same criteria as without a model. `monitoring` is the text of the managers' findings,
    `right` the model's skill in [0, 1]; `request` gives requester, urgency and deadline. Raises the errors of the port.
    """
    names = [each.team_id for each in verdict.candidates]
    named = [Named(each.team_id, _described(each, evidence)) for each in verdict.candidates]
    past = [
        f"{each.incident.id}: {each.incident.title}. Its owner then: {each.incident.owner}"
        for each in evidence.neighbours[:PAST]
    ]
    situation = "\n".join(filter(None, (incident.description, incident.service, monitoring)))
    distribution = await choose(model, request, choose_owner(past, situation, named), names)
    scores = [each.score for each in verdict.candidates]
    odds = weighed(distribution, [*scores, max(0.0, 1.0 - sum(scores))], right)
    rescored = [replace(each, score=share) for each, share in zip(verdict.candidates, odds, strict=False)]
    ranked = tuple(sorted(rescored, key=lambda each: -each.score))
    best = [*verdict.candidates, None][distribution.index(max(distribution))]
    chosen = best.team_name if best else NONE
    vote = Vote(
        max((vote.round for vote in verdict.votes), default=0) + 1,
        "decider",
        best.team_id if best else None,
        f"chose {chosen} out of {len(names)} teams, with a probability of {max(distribution):.0%}",
        voter_name=model.name,
    )
    owner = ranked[0] if may_be_named(ranked, verdict.discussion, evidence) else None
    return replace(verdict, owner=owner, candidates=ranked, votes=(*verdict.votes, vote))


def _described(candidate: TeamScore, evidence: TriageEvidence) -> str:
    document = " ".join(evidence.teams[candidate.team_id].document.split())[:DOCUMENT]
    return "\n".join(
        (f"{candidate.team_name}. {document}", *(f"Its manager: {reason}." for reason in candidate.reasons))
    )
