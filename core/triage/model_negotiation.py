"""The negotiation of team managers that are played by a language model (Triangle, sections 3.1.1 and 3.1.2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.model.incident import Vote
from core.model.language_model import ModelRequest
from core.model.team import Team
from core.ports import LanguageModel
from core.triage.candidates import candidates_from_history
from core.triage.managers import TriageEvidence
from core.triage.model_case import distil
from core.triage.model_decider import choose_group
from core.triage.model_documents import TeamDocuments
from core.triage.model_managers import Monitoring, collect_votes, enrich
from core.triage.negotiate import MAX_ROUNDS, MIN_GROUP, Verdict


@dataclass(frozen=True, slots=True)
class Negotiation:
    """`ranked` are the teams of the last round by their votes, the most first; `agreed` says if more than half of its
    managers voted for the first. `votes` are those of all rounds, in order.
    """

    ranked: tuple[str, ...]
    agreed: bool
    votes: tuple[Vote, ...]

    @property
    def last(self) -> tuple[Vote, ...]:
        """The votes of the last round."""
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
    """Rounds of votes until more than half of a group agree, at most MAX_ROUNDS; there is at least one team.

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
        group = await choose_group(model, request, case, from_history, teams, documents)
        new = [team for team in group if team.id not in asked]
        asked.update(team.id for team in new)
        found = await asyncio.gather(*(enrich(model, request, case, team, monitoring) for team in new))
        case = case.enriched([each for each in found if each])
        last = await collect_votes(model, request, case, group, documents, last, round_number)
        votes += last
        if _leads(last) > len(group) / 2:
            return Negotiation(_ranked(group, last), True, votes)
        teams, from_history = _reselected(teams, group, last), []
    return Negotiation(_ranked(group, last), False, votes)


def _likeliest_first(evidence: TriageEvidence, verdict: Verdict, removed: frozenset[str]) -> list[Team]:
    scores = {candidate.team_id: candidate.score for candidate in verdict.candidates}
    fits = {team: match.score for team, match in evidence.fits.items()}
    left = [team for team in evidence.teams.values() if team.id not in removed]
    return sorted(left, key=lambda team: (-scores.get(team.id, 0.0), -fits.get(team.id, 0.0), team.id))


def _from_history(evidence: TriageEvidence) -> list[Team]:
    """With those that monitoring and ownership name first."""
    best = candidates_from_history(evidence.votes, evidence.learned)
    return [evidence.teams[team] for team in dict.fromkeys([*evidence.located, *evidence.owners, *best])]


def _leads(votes: Sequence[Vote]) -> int:
    return max(Counter(vote.choice for vote in votes if vote.choice).values(), default=0)


def _ranked(group: Sequence[Team], votes: Sequence[Vote]) -> tuple[str, ...]:
    counted = Counter(vote.choice for vote in votes)
    return tuple(sorted((team.id for team in group), key=lambda team: -counted[team]))


def _reselected(teams: Sequence[Team], group: Sequence[Team], votes: Sequence[Vote]) -> list[Team]:
    """Without those of the group that nobody votes for: others take their places."""
    wanted = {vote.choice for vote in votes}
    unwanted = {team.id for team in group} - wanted
    left = [team for team in teams if team.id not in unwanted]
    return left if len(left) >= MIN_GROUP else list(teams)
