"""From the managers' opinions to one owner, or to nobody (Triangle, section 3.1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.incident import Incident, TeamScore
from core.team import Team
from core.triage.enrichment import Enrichment
from core.triage.history import IncidentHistory
from core.triage.managers import Argument, Discussion, Ground, Opinion, discuss

WEIGHTS = {Ground.HISTORY: 0.45, Ground.DOCUMENT: 0.2, Ground.OWNERSHIP: 0.35, Ground.MONITORING: 1.5}
"""How much each ground counts. What was measured now outweighs what the texts look like."""

DOUBT = 0.1  # counts like a ground that speaks for nobody
MIN_SHARE = 0.4  # of the votes, below which nobody is named
MIN_LEAD = 0.1  # ahead of the second, below which nobody is named


@dataclass(frozen=True, slots=True)
class Verdict:
    """`candidates` are best first, their scores sum to at most 1; `owner` is the first of them or None."""

    owner: TeamScore | None
    candidates: tuple[TeamScore, ...]
    discussion: Discussion


def propose_owner(
    incident: Incident, teams: Sequence[Team], history: IncidentHistory, enrichment: Enrichment
) -> Verdict:
    """The team that most of the evidence speaks for; no owner where the evidence is thin or divided."""
    discussion = discuss(incident, teams, history, enrichment)
    candidates = tuple(
        sorted(
            (_score(opinion, discussion.grounds, enrichment) for opinion in discussion.opinions),
            key=lambda candidate: (-candidate.score, candidate.team_id),
        )
    )
    return Verdict(candidates[0] if _is_clear(candidates) else None, candidates, discussion)


def _score(opinion: Opinion, grounds: frozenset[Ground], enrichment: Enrichment) -> TeamScore:
    weights = {ground: WEIGHTS[ground] for ground in grounds}
    if Ground.MONITORING in weights:
        weights[Ground.MONITORING] *= min(1.0, sum(enrichment.services.values()))

    def weighted(argument: Argument) -> float:
        return weights[argument.ground] * argument.score

    arguments = sorted(opinion.arguments, key=weighted, reverse=True)
    return TeamScore(
        team_id=opinion.team.id,
        team_name=opinion.team.name,
        score=sum(map(weighted, arguments)) / (DOUBT + sum(weights.values())),
        reasons=tuple(argument.reason for argument in arguments),
    )


def _is_clear(candidates: Sequence[TeamScore]) -> bool:
    if not candidates or candidates[0].score < MIN_SHARE:
        return False
    return len(candidates) == 1 or candidates[0].score - candidates[1].score >= MIN_LEAD
