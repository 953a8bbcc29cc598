"""The negotiation of team managers that are played by a language model (Triangle, sections 3.1.1 and 3.1.2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model.incident import TeamScore, Vote
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model.team import Team
from core.ports import LanguageModel
from core.triage.candidates import candidates_from_history
from core.triage.managers import TriageEvidence
from core.triage.model_managers import Monitoring, TeamDocuments, collect_votes, distil, enrich, select_group
from core.triage.negotiate import MAX_ROUNDS, MIN_GROUP, Verdict
from core.triage.owner_evidence import evaluate_owner

VERSION = "owner-votes-1"


@dataclass(frozen=True, slots=True)
class Negotiation:
    """The outcome of a negotiation. `ranked` are the teams of the last round by their votes, the most first; `agreed` says if more than half of its
    managers voted for the first. `votes` are those of all rounds, in order.
    """

    ranked: tuple[str, ...]
    agreed: bool
    votes: tuple[Vote, ...]

    @property
    def last(self) -> tuple[Vote, ...]:
        """Return the votes of the last round."""
        return tuple(vote for vote in self.votes if vote.round == self.votes[-1].round)


async def negotiate_with_model(
    model: LanguageModel,
    request: ModelRequest,
    incident: str,
    evidence: TriageEvidence,
    verdict: Verdict,
    documents: TeamDocuments,
    monitoring: Monitoring,
    removed: frozenset[str] = frozenset(),
) -> Negotiation:
    """Hold rounds of votes until more than half of a group agree, at most MAX_ROUNDS; there is at least one team.

    `verdict` is what the evidence engine made of the same evidence. `removed` are teams that turned the incident away in
    earlier hops: then history is not asked for candidates. Raises ModelUnavailable, InvalidReply and PromptTooLong
    where nothing came of it.
    """
    teams = _likeliest_first(evidence, verdict, removed)
    case = await distil(model, request, incident, teams)
    from_history = [] if removed else _from_history(evidence)
    asked: set[str] = set()
    votes: tuple[Vote, ...] = ()
    last: tuple[Vote, ...] = ()
    group: tuple[Team, ...] = ()
    for round_number in range(1, MAX_ROUNDS + 1):
        group = await select_group(model, request, case, from_history, teams, documents)
        new = [team for team in group if team.id not in asked]
        asked.update(team.id for team in new)
        found = await asyncio.gather(*(enrich(model, request, case, team, monitoring) for team in new))
        case = replace(case, discussion=(*case.discussion, *filter(None, found)))
        last = await collect_votes(model, request, case, group, documents, last, round_number)
        votes += last
        if _leads(last) > len(group) / 2:
            return Negotiation(_ranked(group, last), True, votes)
        teams, from_history = _reselected(teams, group, last), []
    return Negotiation(_ranked(group, last), False, votes)


def candidates_of(negotiation: Negotiation, evidence: TriageEvidence) -> tuple[TeamScore, ...]:
    """Return the teams of the last round with their share of its votes, and the reasons of those who voted for them."""
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
    """Return the COE of the evidence engine, since the managers judge the same references; the RCE is the share of votes."""
    return Evaluation(evaluate_owner(verdict).coe, candidates[0].score)


def _likeliest_first(evidence: TriageEvidence, verdict: Verdict, removed: frozenset[str]) -> list[Team]:
    scores = {candidate.team_id: candidate.score for candidate in verdict.candidates}
    fits = {team: match.score for team, match in evidence.fits.items()}
    left = [team for team in evidence.teams.values() if team.id not in removed]
    return sorted(left, key=lambda team: (-scores.get(team.id, 0.0), -fits.get(team.id, 0.0), team.id))


def _from_history(evidence: TriageEvidence) -> list[Team]:
    """Return the candidates from history, those that monitoring and ownership name first."""
    best = candidates_from_history(evidence.votes, evidence.learned)
    return [evidence.teams[team] for team in dict.fromkeys([*evidence.located, *evidence.owners, *best])]


def _leads(votes: Sequence[Vote]) -> int:
    return max(Counter(vote.choice for vote in votes if vote.choice).values(), default=0)


def _ranked(group: Sequence[Team], votes: Sequence[Vote]) -> tuple[str, ...]:
    counted = Counter(vote.choice for vote in votes)
    return tuple(sorted((team.id for team in group), key=lambda team: -counted[team]))


def _reselected(teams: Sequence[Team], group: Sequence[Team], votes: Sequence[Vote]) -> list[Team]:
    """Return the teams without those of the group that nobody votes for: others take their places."""
    wanted = {vote.choice for vote in votes}
    unwanted = {team.id for team in group} - wanted
    left = [team for team in teams if team.id not in unwanted]
    return left if len(left) >= MIN_GROUP else list(teams)
