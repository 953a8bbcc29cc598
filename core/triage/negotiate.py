"""Derive one owner, or none, from the managers' opinions (Triangle, section 3.1.2).

Where teams can read their own monitoring, they negotiate in rounds (section 3.1.1). COE and RCE of the proposed owner come
from the evidence of the triage (LM-PACE, sections 3.2 and 3.3).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from core.confidence.calibrator import Label
from core.model.badge import Evaluation
from core.model.errors import Unavailable
from core.model.findings import TeamScore, Vote
from core.model.team import Team
from core.triage.candidates import GROUP
from core.triage.managers import (
    MAX_TEXT,
    Argument,
    Discussion,
    Enrichment,
    Ground,
    Opinion,
    Owned,
    TeamFinding,
    TriageEvidence,
    choose_group,
    discuss,
)
from core.triage.owner_model import OwnerModel

WEIGHTS = {
    Ground.HISTORY: 0.45,
    Ground.DOCUMENT: 0.2,
    Ground.OWNERSHIP: 0.35,
    Ground.MONITORING: 1.5,
    Ground.OBSERVED: 0.5,
    Ground.CODE: 0.35,
    Ground.LEARNED: 0.65,
}
"""Weights of the grounds. Measurements outweigh texts; trouble in a team's own services may be only a symptom."""

LEARNED_FROM = (Ground.HISTORY, Ground.DOCUMENT)  # replaced by the learned ground if a model was fitted
DOUBT = 0.1  # weight of a ground without an argument for anybody, or of texts about a service that is strange to all
MIN_SHARE = 0.4  # of the scores; below it, nobody is named
INSISTS = 0.8  # share of the best score from which a manager votes for its own team

NO_OWNER_SHARE = 0.5  # share of the votes for no owner from which nobody is named
MAX_ROUNDS = 5  # of votes, before a person is asked
MIN_GROUP = 2  # teams in a discussion
NOBODY_SILENT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the owner. `candidates` are best first, their scores sum to at most 1; `owner` is the first or None.

    `votes` holds one vote of every manager in the discussion for every round.
    """

    owner: TeamScore | None
    candidates: tuple[TeamScore, ...]
    discussion: Discussion
    votes: tuple[Vote, ...] = ()


def negotiate(evidence: TriageEvidence, removed: frozenset[str] = frozenset()) -> Verdict:
    """Return the verdict of one round, without new monitoring data."""
    return judge(evidence, choose_group(evidence, removed), removed)


def judge(
    evidence: TriageEvidence,
    group: Sequence[str],
    removed: frozenset[str] = frozenset(),
    round_number: int = 1,
    silent: Mapping[str, str] = NOBODY_SILENT,
) -> Verdict:
    """Return the verdict of a group. It names a team with a majority of the managers and a score of at least MIN_SHARE,
    or with all votes. In the first round, all votes do not suffice if they rest on similar texts alone, because most
    such owners are wrong; nor in any round for a team that does not own the service, if another one does.

    `silent` maps teams to the reason why their managers abstain.
    """
    discussion = discuss(evidence, group, removed)
    located = _sureness(evidence.located)  # the more certain the cause, the more likely other trouble is a symptom
    sure = {Ground.MONITORING: located, Ground.OBSERVED: _sureness(evidence.observed) * (1 - located)}
    candidates = tuple(
        sorted(
            (_score(opinion, discussion.grounds, sure) for opinion in discussion.opinions),
            key=lambda candidate: (-candidate.score, candidate.team_id),
        )
    )
    votes = tuple(
        Vote(round_number, each.team_id, None, f"did not answer: {silent[each.team_id]}", voter_name=each.team_name)
        if each.team_id in silent
        else replace(_vote(each, candidates[0]), round=round_number)
        for each in candidates
    )
    is_unanimous = len(votes) >= MIN_GROUP and len({vote.choice for vote in votes}) == 1
    is_clear = (
        is_unanimous
        and (round_number > 1 or _is_grounded(candidates[0], discussion))
        and (not evidence.owners or candidates[0].team_id in evidence.owners)
    )
    least = 0.0 if is_clear else MIN_SHARE
    named = majority(votes) is not None and may_be_named(candidates, discussion, evidence, least)
    return Verdict(candidates[0] if named else None, candidates, discussion, votes)


def may_be_named(
    candidates: Sequence[TeamScore], discussion: Discussion, evidence: TriageEvidence, least: float = MIN_SHARE
) -> bool:
    """Return whether the first of `candidates`, best first, is clear enough to be named, and past incidents allow it.

    It has more than a learned probability: an incident like no other has no known owner.
    """
    owned = evidence.nobody < NO_OWNER_SHARE and not _outvotes_a_new_team(candidates, evidence)
    return owned and candidates[0].score >= least and not _grounds(candidates[0], discussion) <= {Ground.LEARNED}


def is_weak(verdict: Verdict) -> bool:
    """Return whether an owner is named for the words of texts alone: all vote for it below MIN_SHARE, or a document fits."""
    owner, discussion = verdict.owner, verdict.discussion
    return (
        owner is not None
        and not _is_grounded(owner, discussion)
        and (owner.score < MIN_SHARE or _grounds(owner, discussion) <= {Ground.DOCUMENT})
    )


def _sureness(located: Mapping[str, Owned]) -> float:
    """Return the certainty, in [0, 1], that there was trouble at all."""
    return min(1.0, sum(owned.share for owned in located.values()))


def _score(opinion: Opinion, grounds: frozenset[Ground], sure: Mapping[Ground, float]) -> TeamScore:
    """Return the score of a team; `sure` maps a ground to the share of its weight that counts, by default all."""
    without = LEARNED_FROM if Ground.LEARNED in grounds else ()
    weights = {ground: 0.0 if ground in without else WEIGHTS[ground] * sure.get(ground, 1.0) for ground in grounds}

    def weighted(argument: Argument) -> float:
        return weights[argument.ground] * argument.score

    arguments = sorted(opinion.arguments, key=weighted, reverse=True)
    return TeamScore(
        team_id=opinion.team.id,
        team_name=opinion.team.name,
        score=sum(map(weighted, arguments)) / (DOUBT + sum(weights.values())),
        reasons=tuple(argument.reason for argument in arguments),
    )


def _vote(own: TeamScore, best: TeamScore) -> Vote:
    """Return the vote of a manager: for its own team, unless there is much more evidence for another; or for none."""
    if not best.score:
        return Vote(1, own.team_id, None, "there is no evidence for any team", voter_name=own.team_name)
    choice = own if own.score >= INSISTS * best.score else best
    reason = f"{choice.team_name}: {'; '.join(choice.reasons[:2])}"
    if choice is not own:
        reason += f". For {own.team_name}: {own.reasons[0] if own.reasons and own.score else 'nothing'}"
    return Vote(1, own.team_id, choice.team_id, reason, voter_name=own.team_name)


def majority(votes: Sequence[Vote]) -> str | None:
    """Return the team that more than half of the group vote for; abstentions count as votes for nobody (section 3.1.2)."""
    counted = Counter(vote.choice for vote in votes if vote.choice)
    return next((team for team, count in counted.items() if count > len(votes) / 2), None)


def _outvotes_a_new_team(candidates: Sequence[TeamScore], evidence: TriageEvidence) -> bool:
    """Return whether the best team only wins by past incidents, which a new owner cannot have."""
    best = candidates[0].team_id if candidates else ""
    return bool(evidence.new_owners) and best not in evidence.new_owners and best not in evidence.located


def _is_grounded(candidate: TeamScore, discussion: Discussion) -> bool:
    """Return whether more than texts speaks for a team: what it owns, or what was measured."""
    return bool(_grounds(candidate, discussion) - {Ground.LEARNED, *LEARNED_FROM})


def _grounds(candidate: TeamScore, discussion: Discussion) -> set[Ground]:
    return {
        argument.ground
        for opinion in discussion.opinions
        if opinion.team.id == candidate.team_id
        for argument in opinion.arguments
    }


Gather = Callable[[Enrichment], Awaitable[TriageEvidence]]
"""Gathers the evidence about the owner, given the monitoring data."""

Look = Callable[[Team], Awaitable[TeamFinding]]
"""Returns what a team's own monitoring shows around the incident. Raises Unavailable."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of a negotiation: the verdict with the votes of all rounds, and the evidence at that time."""

    verdict: Verdict
    evidence: TriageEvidence
    enrichment: Enrichment


async def negotiate_in_rounds(
    gather: Gather, enrichment: Enrichment, look: Look, removed: frozenset[str] = frozenset()
) -> Settlement:
    """Hold at most MAX_ROUNDS of votes; `removed` are teams that turned the incident away in earlier hops.

    A manager whose monitoring cannot be read abstains, and is asked again in the next round; if that of no manager in a
    group can be read, all vote without it. The negotiation ends early if another round would only repeat the last one.
    """
    evidence = await gather(enrichment)
    looked: set[str] = set()
    dropped: frozenset[str] = frozenset()
    votes: tuple[Vote, ...] = ()
    verdict = judge(evidence, (), removed)
    group = _filled(choose_group(evidence, removed), evidence, removed)
    for number in range(1, MAX_ROUNDS + 1):
        findings, failures = await _looked([evidence.teams[team] for team in group if team not in looked], look)
        looked |= findings.keys()
        if any(finding.services or finding.text for finding in findings.values()):
            enrichment = _enriched(enrichment, findings.values())
            evidence = await gather(enrichment)
        verdict = judge(evidence, group, removed, number, failures if len(failures) < len(group) else {})
        votes += verdict.votes
        if verdict.owner is not None or not group:
            break
        if wanted := {vote.choice for vote in verdict.votes if vote.choice}:  # those that nobody votes for make room
            dropped |= {vote.voter for vote in verdict.votes} - wanted
        others = _filled(choose_group(evidence, removed | dropped), evidence, removed | dropped)
        if set(others) <= set(group) and not failures:
            break
        group = others if len(others) >= MIN_GROUP else group
    candidates = tuple(candidate for candidate in verdict.candidates if candidate.score)
    return Settlement(replace(verdict, votes=votes, candidates=candidates), evidence, enrichment)


def _filled(group: tuple[str, ...], evidence: TriageEvidence, absent: frozenset[str]) -> tuple[str, ...]:
    """Return the group, filled up to GROUP with teams without evidence so far, because their services may show trouble."""
    running = (team.id for team in evidence.teams.values() if team.services and team.id not in absent)
    return tuple(dict.fromkeys([*group, *running]))[:GROUP]


async def _looked(teams: Sequence[Team], look: Look) -> tuple[dict[str, TeamFinding], dict[str, str]]:
    """Return the findings by team, and the failures by team. All managers look at the same time."""

    async def one(team: Team) -> TeamFinding | Unavailable:
        try:
            return await look(team)
        except Unavailable as error:
            return error

    outcomes = dict(zip((team.id for team in teams), await asyncio.gather(*map(one, teams)), strict=True))
    return (
        {team: each for team, each in outcomes.items() if isinstance(each, TeamFinding)},
        {team: str(each) for team, each in outcomes.items() if isinstance(each, Unavailable)},
    )


def _enriched(enrichment: Enrichment, findings: Collection[TeamFinding]) -> Enrichment:
    observed = dict(enrichment.observed)
    for finding in findings:
        for service, strength in finding.services.items():
            observed[service] = max(strength, observed.get(service, 0.0))
    texts = [enrichment.text, *(finding.text for finding in findings)]
    return replace(enrichment, observed=observed, text="\n".join(filter(None, texts))[:MAX_TEXT])


VERSION = "owner-evidence-5"
NEAR = 0.5  # similarity at which a past incident counts as a repetition
INFORMS = {
    Ground.LEARNED: 1.0,  # a model fitted to the history
    Ground.OWNERSHIP: 0.5,  # a known owner of the alert's service
    Ground.DOCUMENT: 0.2,  # a matching team document
    Ground.MONITORING: 0.6,  # a located cause
    Ground.OBSERVED: 0.3,  # symptoms in a team's own services
    Ground.CODE: 0.3,  # the owners of failing files
}
"""Contributions of the grounds to the COE."""


def version_with(embedder: str = "") -> str:
    """Return the version of the estimator. With an embedding model its measures differ, so it is a separate version."""
    return f"{VERSION}:{embedder}" if embedder else VERSION


def evaluate_owner(verdict: Verdict) -> Evaluation:
    """Return the evaluation of a proposed owner.

    COE is how far the grounds can decide at all; RCE is how far they agree on the first candidate. A model learned from
    the history was validated on unseen incidents, so its probability replaces the grounds that it was trained on. Texts
    alone hardly decide whose a strange service is: incidents of others read like its own.
    """
    discussion, grounds = verdict.discussion, verdict.discussion.grounds
    unlike = 1 - min(1.0, discussion.similarity / NEAR) * discussion.agreement
    coe = 1 - unlike * prod(1 - contribution for ground, contribution in INFORMS.items() if ground in grounds)
    if grounds and discussion.is_strange and _grounds(verdict.candidates[0], discussion) <= set(LEARNED_FROM):
        coe *= DOUBT
    learned = Ground.LEARNED in grounds
    support = [_support(ground, verdict) for ground in sorted(grounds) if not (learned and ground in LEARNED_FROM)]
    return Evaluation(coe=coe, rce=sum(support) / len(support) if support else 0.0)


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
