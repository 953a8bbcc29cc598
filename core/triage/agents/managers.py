"""The Team Managers: what a team's own monitoring shows, and its vote (Triangle, sections 3.1.2 and 3.3)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.findings import Vote
from core.model.team import Team
from core.model_calls.prompts import triage as prompts
from core.triage.agents.analyser import TriageCase
from core.triage.agents.decider import MAX_DOCUMENT, Known, TeamDocuments
from core.triage.agents.session import Session

MAX_MONITORING = 4_000  # characters read of a team's monitoring
MAX_SERVICES = 19  # of a team, that its manager may name
SUMMARY_TOKENS = 2_000  # room for the longest reply, also if a token is a byte
VOTE_TOKENS = 900

FAILURES = (InvalidReply, ModelUnavailable, PromptTooLong)

Monitoring = Callable[[Team, str], Awaitable[str]]
"""Returns what a team's read-only tools show around the incident, seen from one of its services (empty: from that of the
incident). Empty if the team has none. Untrusted.
"""

# What a sentence cannot name unless it was read: numbers, and names with a capital, digit or mark inside.
_LITERAL = re.compile(r"(?<!\w)(?:\w*[\d_][\w.%/:-]*|\w+(?:[./:-]\w+)+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)")


async def nothing_monitored(_team: Team, _service: str) -> str:
    """Return nothing: no monitoring is connected."""
    return ""


async def enrich(session: Session, case: TriageCase, team: Team, monitoring: Monitoring, *, names_service: bool) -> str:
    """Return a paragraph on the team's monitoring; empty if it shows nothing or the model fails.

    Where the incident `names_service`, monitoring is seen from there; else from the service that the manager names.
    """
    try:
        service = "" if names_service else await _concerned(session, case, team)
        shown = (await monitoring(team, service))[:MAX_MONITORING]
        if not shown.strip():
            return ""
        messages = prompts.summarise(case.text, team.name, team.document[:MAX_DOCUMENT], shown)
        summary = await session.ask(messages, prompts.MonitoringSummary, SUMMARY_TOKENS)
    except FAILURES:
        return ""  # the discussion goes on with what the other teams know
    return f"{team.name} ({team.id}): {summary.events} {summary.relation} {summary.suggestions}"


async def _concerned(session: Session, case: TriageCase, team: Team) -> str:
    """Return the team's service that the incident concerns, as its manager infers it; empty if it is none."""
    services = sorted(team.services)[:MAX_SERVICES]
    if len(services) < 2:
        return ""
    return await session.choose(prompts.locate(case.text, team.name, services), services) or ""


async def collect_votes(
    session: Session,
    case: TriageCase,
    group: Sequence[Team],
    documents: TeamDocuments,
    facts: Known,
    before: Sequence[Vote],
    round_number: int,
) -> tuple[Vote, ...]:
    """Return the vote of every manager in the group, asked all at once. One that fails abstains.

    A reason is left out if it names what its manager did not read. Raises what the model raised if all of them fail.
    """
    statements = [f"{vote.voter} voted for {vote.choice or 'nobody'}: {vote.reason}" for vote in before]
    longest = max(group, key=lambda team: len(team.document))
    own = {team.id: team.document[:MAX_DOCUMENT] for team in group}

    def render(held: Sequence[str]) -> prompts.Messages:
        return prompts.vote(case.text, held, statements, longest.name, own[longest.id])

    shown = await documents.fitting(session, group, facts, render, VOTE_TOKENS)
    choices = {"team": (*(team.id for team in group), prompts.NOBODY)}

    async def vote(team: Team) -> Vote | Exception:
        messages = prompts.vote(case.text, shown.documents, statements, team.name, own[team.id])
        try:
            ballot = await session.ask(messages, prompts.Ballot, VOTE_TOKENS, choices)
        except FAILURES as error:
            return error
        reason = " ".join(ballot.reason.split())  # on one line, which cannot pass for a vote of somebody else's
        read = "\n".join(message.text for message in messages)
        choice = None if ballot.team == prompts.NOBODY else ballot.team
        return Vote(round_number, team.id, choice, reason if is_supported(reason, read) else "", voter_name=team.name)

    votes = await asyncio.gather(*map(vote, group))
    failures = [each for each in votes if isinstance(each, Exception)]
    if len(failures) == len(votes):
        raise failures[0]
    return tuple(
        Vote(round_number, team.id, None, "did not answer", voter_name=team.name)
        if isinstance(each, Exception)
        else each
        for team, each in zip(group, votes, strict=True)
    )


def is_supported(reason: str, read: str) -> bool:
    """Return whether everything that a reason names by a number or an identifier occurs in what was read."""
    return _named(reason) <= _named(read) | {part for each in _named(read) for part in each.split("/")}


def _named(text: str) -> set[str]:
    return {literal.rstrip(".:/-").casefold() for literal in _LITERAL.findall(text)}
