"""The negotiation in rounds without a language model (Triangle, sections 3.1.1 and 3.1.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

from core.model.errors import Unavailable
from core.model.incident import Vote
from core.model.team import Team
from core.triage.candidates import GROUP
from core.triage.managers import TriageEvidence, choose_group
from core.triage.monitoring import MAX_TEXT, Enrichment, TeamFinding
from core.triage.negotiate import MAX_ROUNDS, MIN_GROUP, Verdict, judge

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
        new = [evidence.teams[team] for team in group if team not in looked]
        findings, failures = await _looked(new, look)
        looked |= findings.keys()
        if any(finding.services or finding.text for finding in findings.values()):
            enrichment = _enriched(enrichment, findings.values())
            evidence = await gather(enrichment)
        silent = failures if len(failures) < len(group) else {}
        verdict = judge(evidence, group, removed, number, silent)
        votes += verdict.votes
        if verdict.owner is not None or not group:
            break
        dropped |= _unwanted(verdict)
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

    found = dict(zip((team.id for team in teams), await asyncio.gather(*map(one, teams)), strict=True))
    return (
        {team: each for team, each in found.items() if isinstance(each, TeamFinding)},
        {team: str(each) for team, each in found.items() if isinstance(each, Unavailable)},
    )


def _enriched(enrichment: Enrichment, findings: Collection[TeamFinding]) -> Enrichment:
    observed = dict(enrichment.observed)
    for finding in findings:
        for service, strength in finding.services.items():
            observed[service] = max(strength, observed.get(service, 0.0))
    texts = [enrichment.text, *(finding.text for finding in findings)]
    return replace(enrichment, observed=observed, text="\n".join(filter(None, texts))[:MAX_TEXT])


def _unwanted(verdict: Verdict) -> frozenset[str]:
    """Return the teams of the group that nobody votes for; none of them if nobody votes for anybody."""
    wanted = {vote.choice for vote in verdict.votes if vote.choice}
    return frozenset({vote.voter for vote in verdict.votes} - wanted) if wanted else frozenset()
