"""Team managers with a language model: what their monitoring shows, and whose incident they say it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import Vote
from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.prompts import triage as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel
from core.triage.model_case import TriageCase
from core.triage.model_documents import TeamDocuments

MAX_MONITORING = 4_000  # characters of a team's monitoring that are read
SUMMARY_TOKENS = 2_000  # room for the longest summary, also where a token is a byte
VOTE_TOKENS = 900  # room for the longest ballot, also where a token is a byte

Monitoring = Callable[[Team], Awaitable[str]]
"""What a team's read-only tools show around the incident; empty where it has none. Untrusted."""


async def enrich(
    model: LanguageModel, request: ModelRequest, case: TriageCase, team: Team, monitoring: Monitoring
) -> str:
    """Team Information Enrichment (Triangle, section 3.3): one paragraph; empty where there is nothing to say."""
    shown = (await monitoring(team))[:MAX_MONITORING]
    if not shown.strip():
        return ""
    messages = prompts.summarise(case.text, team.name, shown)
    try:
        found = await structured(
            model, replace(request, messages=messages, max_tokens=SUMMARY_TOKENS), prompts.MonitoringSummary
        )
    except (InvalidReply, ModelUnavailable, PromptTooLong):
        return ""  # the discussion goes on with what the other teams know
    return f"{team.name} ({team.id}): {found.events} {found.relation} {found.suggestions}"


async def collect_votes(
    model: LanguageModel,
    request: ModelRequest,
    case: TriageCase,
    group: Sequence[Team],
    documents: TeamDocuments,
    before: Sequence[Vote],
    round_number: int,
) -> tuple[Vote, ...]:
    """The vote of every manager in the group, asked all at once. One that fails abstains.

    Raises what the model raised if all of them fail.
    """
    said = [f"{vote.voter} voted for {vote.choice or 'nobody'}: {vote.reason}" for vote in before]
    request = replace(request, max_tokens=VOTE_TOKENS)
    shown = await documents.fitting(group, lambda held: prompts.vote(case.text, held, said, group[0].name), request)
    choices = {"team": (*(team.id for team in group), prompts.NOBODY)}

    async def vote(team: Team) -> Vote | Exception:
        messages = prompts.vote(case.text, shown.documents, said, team.name)
        try:
            ballot = await structured(model, replace(request, messages=messages), prompts.Ballot, choices)
        except (InvalidReply, ModelUnavailable, PromptTooLong) as error:
            return error
        reason = " ".join(ballot.reason.split())  # on one line, which cannot pass for a vote of somebody else's
        choice = None if ballot.team == prompts.NOBODY else ballot.team
        return Vote(round_number, team.id, choice, reason, voter_name=team.name)

    votes = await asyncio.gather(*map(vote, group))
    failures = [each for each in votes if isinstance(each, Exception)]
    if len(failures) == len(votes):
        raise failures[0]
    return tuple(
        Vote(round_number, team.id, None, f"did not answer: {each}", voter_name=team.name)
        if isinstance(each, Exception)
        else each
        for team, each in zip(group, votes, strict=True)
    )
