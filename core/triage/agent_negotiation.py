"""The negotiation of team managers that a language model plays (Triangle, sections 3.1.1 and 3.1.2), and its decision.

If more than half of the managers of a group vote for one team, it owns the incident. Otherwise those whom nobody votes for
make room for others, for at most MAX_ROUNDS. Then a decider that belongs to no team ends it: one constrained choice among
those voted for in the last round and the candidates of the evidence, weighed against the evidence, or a person is asked.

That choice is all that is asked of a model that finds better than it writes: the managers then report the evidence for their
own team (`core/triage/managers.py`, `core/triage/negotiate.py`), and the decider has the remaining vote.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model.badge import Evaluation
from core.model.errors import ModelUnavailable
from core.model.findings import TeamScore, Vote
from core.model.incident import Incident
from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.choice import NONE, Skill, choose, weighed
from core.model_calls.prompts import Named
from core.model_calls.prompts.incidents import choose_owner
from core.ports import LanguageModel
from core.triage.agents import Monitoring, Session, TeamDocuments, collect_votes, distilled_case, enrich, select_group
from core.triage.candidates import GROUP, candidates_from_history
from core.triage.managers import TriageEvidence
from core.triage.negotiate import (
    DOCUMENTS_INFORM,
    MAX_ROUNDS,
    MIN_GROUP,
    OBSERVED_INFORMS,
    Verdict,
    evaluate_owner,
    is_weak,
    judge,
    may_be_named,
)

DECIDER_VERSION = "owner-choice-1"  # of the prompt and the weighting; stored with every prediction
PAST = 3  # past incidents that a model reads
DOCUMENT = 400  # characters read of a team's document
LEAST_ROUND = GROUP + 3  # calls: the group is selected, its managers vote, and the decider chooses if they do not agree
WHOLE_ROUND = 2 * GROUP + 3  # calls: their monitoring is summarised as well
NOT_ASKED = "the teams' managers not asked"
NOT_HELD = "round {number} of the teams' managers not held"
NOT_ENRICHED = "the teams' monitoring not summarised in round {number}"


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


AGENTS_VERSION = "owner-agents-1"  # of the prompts and the vote; stored with every prediction


@dataclass(frozen=True, slots=True)
class Dispute:
    """An incident whose owner is open: the verdict of the evidence engine, what it rests on, and what monitoring found.

    `removed` are teams that turned the incident away in earlier hops: then history is not asked for candidates.
    """

    incident: Incident
    verdict: Verdict
    evidence: TriageEvidence
    found: str = ""
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict of a language model, how far its evidence goes, and the version of the method that made it."""

    verdict: Verdict
    evaluation: Evaluation
    version: str


def needs_model(dispute: Dispute, skill: Skill) -> bool:
    """Return whether a model is asked: if several teams are left, and the evidence names nobody, or one by words alone.

    One that is always asked is asked about any owner. Agents read what all teams own, so that they may also find one for
    which the evidence has nothing.
    """
    left = dispute.evidence.teams.keys() - dispute.removed if skill.writes else dispute.verdict.candidates
    return (dispute.verdict.owner is None or is_weak(dispute.verdict) or skill.always) and len(left) > 1


async def settled_by_model(
    dispute: Dispute, session: Session, skill: Skill, documents: TeamDocuments, monitoring: Monitoring
) -> Settled:
    """Return the verdict of the agents if the model has proved that it writes, otherwise that of a single choice.

    Raises ModelUnavailable, InvalidReply and PromptTooLong.
    """
    return await (
        _negotiated(dispute, session, skill, documents, monitoring)
        if skill.writes
        else _decided(dispute, session, skill, dispute.found)
    )


async def _decided(dispute: Dispute, session: Session, skill: Skill, monitored: str) -> Settled:
    verdict = await decided_by_model(
        dispute.verdict, dispute.evidence, dispute.incident, monitored, session.model, session.request, skill.right
    )
    return Settled(verdict, evaluate_owner(verdict), DECIDER_VERSION)


async def _negotiated(
    dispute: Dispute, session: Session, skill: Skill, documents: TeamDocuments, monitoring: Monitoring
) -> Settled:
    incident, evidence, model = dispute.incident, dispute.evidence, session.model
    if model.replies_left() < LEAST_ROUND:
        model.left_out[NOT_ASKED] = None
        if not dispute.verdict.candidates:
            raise ModelUnavailable(f"There is no budget left to ask {model.name} about the owner.")
        return await _decided(dispute, session, skill, dispute.found)
    facts = {candidate.team_id: candidate.reasons for candidate in dispute.verdict.candidates}
    teams = _likeliest_first(dispute)
    case = await distilled_case(
        session, "\n".join(filter(None, (incident.description, incident.service, dispute.found))), teams
    )
    from_history = [] if dispute.removed else _from_history(evidence)
    enriched: set[str] = set()
    votes: tuple[Vote, ...] = ()
    last: tuple[Vote, ...] = ()
    group: tuple[Team, ...] = ()
    for number in range(1, MAX_ROUNDS + 1):
        if number > 1 and model.replies_left() < WHOLE_ROUND:
            model.left_out[NOT_HELD.format(number=number)] = None
            break
        group = await select_group(session, case, from_history, teams, documents, facts)
        new = [team for team in group if team.id not in enriched]
        if model.replies_left() < len(new) + len(group) + 1:
            model.left_out[NOT_ENRICHED.format(number=number)] = None
            new = []
        enriched.update(team.id for team in new)
        paragraphs = await asyncio.gather(
            *(enrich(session, case, team, monitoring, names_service=bool(incident.service)) for team in new)
        )
        case = replace(case, discussion=(*case.discussion, *filter(None, paragraphs)))
        last = await collect_votes(session, case, group, documents, facts, last, number)
        votes += last
        winner = _majority(last)
        if winner is not None:
            return _agreed(dispute, group, votes, winner, skill, monitored=bool(case.discussion))
        teams, from_history = _reselected(teams, group, last), []
    wanted = [vote.choice for vote in last if vote.choice]
    left = judge(evidence, list(dict.fromkeys([*wanted, *facts]))[:GROUP], dispute.removed)
    open_yet = replace(dispute, verdict=replace(left, owner=None, votes=votes))
    decided = await _decided(open_yet, session, skill, "\n".join((dispute.found, *case.discussion)))
    # Where all managers abstain, the candidates of the evidence stand, and nobody is named.
    return decided if wanted else replace(decided, verdict=replace(decided.verdict, owner=None))


def _agreed(
    dispute: Dispute, group: Sequence[Team], votes: tuple[Vote, ...], winner: str, skill: Skill, *, monitored: bool
) -> Settled:
    """Return the verdict that names the winner.

    Its COE is that of the evidence engine and of what the managers read besides, its RCE the share of votes for it, as far as
    the model's skill goes.
    """
    judged = judge(dispute.evidence, [team.id for team in group], dispute.removed)
    last = [vote for vote in votes if vote.round == votes[-1].round]
    counted = Counter(vote.choice for vote in last)
    shares = [_voted(each, last, counted[each.team_id] / len(last)) for each in judged.candidates]
    candidates = tuple(sorted(shares, key=lambda each: (each.team_id != winner, -each.score)))
    verdict = replace(judged, owner=candidates[0], candidates=candidates, votes=votes)
    silent = (1 - evaluate_owner(verdict).coe) * (1 - DOCUMENTS_INFORM) * (1 - OBSERVED_INFORMS * monitored)
    return Settled(verdict, Evaluation(1 - silent, candidates[0].score * skill.right), AGENTS_VERSION)


def _voted(candidate: TeamScore, last: Sequence[Vote], share: float) -> TeamScore:
    """Return the candidate with its share of the votes, and the reasons of those who voted for it before its own."""
    reasons = [vote.reason for vote in last if vote.choice == candidate.team_id and vote.reason]
    return replace(candidate, score=share, reasons=tuple(dict.fromkeys([*reasons, *candidate.reasons])))


def _majority(votes: Sequence[Vote]) -> str | None:
    """Return the team that more than half of the group vote for; abstentions count as members of the group."""
    counted = Counter(vote.choice for vote in votes if vote.choice)
    return next((team for team, count in counted.items() if count > len(votes) / 2), None)


def _likeliest_first(dispute: Dispute) -> list[Team]:
    scores = {candidate.team_id: candidate.score for candidate in dispute.verdict.candidates}
    fits = {team: match.score for team, match in dispute.evidence.fits.items()}
    left = (team for team in dispute.evidence.teams.values() if team.id not in dispute.removed)
    return sorted(left, key=lambda team: (-scores.get(team.id, 0.0), -fits.get(team.id, 0.0), team.id))


def _from_history(evidence: TriageEvidence) -> list[Team]:
    """Return the candidates from history, those that monitoring and ownership name first."""
    best = candidates_from_history(evidence.votes, evidence.learned)
    return [evidence.teams[team] for team in dict.fromkeys([*evidence.located, *evidence.owners, *best])]


def _reselected(teams: Sequence[Team], group: Sequence[Team], votes: Sequence[Vote]) -> list[Team]:
    """Return the teams without those of the group that nobody votes for: others take their places."""
    unwanted = {team.id for team in group} - {vote.choice for vote in votes}
    left = [team for team in teams if team.id not in unwanted]
    return left if len(left) >= MIN_GROUP else list(teams)
