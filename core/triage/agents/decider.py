"""The Triage Decider: the teams that discuss an incident, by history and by their documents (Triangle, Algorithm 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.model.errors import InvalidReply, PromptTooLong
from core.model.team import Team
from core.model_calls.context_budget import fitting_texts
from core.model_calls.prompts import triage as prompts
from core.model_calls.prompts.quoted import beginning
from core.triage.agents.analyser import TriageCase
from core.triage.agents.session import Session
from core.triage.candidates import FROM_DOCUMENTS, GROUP

MAX_DOCUMENT = 6_000  # characters read of a team's document
MAX_POOL = 30  # likeliest teams whose documents are matched
MAX_SUMMARIES = 1_000  # of documents, that are remembered
SHORT = 400  # characters of a document in place of a summary
RANK_TOKENS = 600
COMPRESS_TOKENS = 600

Render = Callable[[Sequence[str]], prompts.Messages]
Known = Mapping[str, Sequence[str]]  # team id → what the evidence engine knows of it


@dataclass(frozen=True, slots=True)
class ShownTeams:
    """The teams whose documents fit, and these as a prompt shows them."""

    teams: tuple[Team, ...]
    documents: tuple[str, ...]


class TeamDocuments:
    """Shows as much of the team documents as fits; remembers summaries until a document is changed."""

    def __init__(self) -> None:
        self._summaries: dict[tuple[str, str], str] = {}

    async def fitting(
        self, session: Session, teams: Sequence[Team], facts: Known, render: Render, max_tokens: int
    ) -> ShownTeams:
        """Return the documents of `teams`, best first, that fit into a prompt that `render` makes of them.

        Whole if all fit; otherwise all in short, and then without those that do not fit. Raises PromptTooLong and
        ModelUnavailable.
        """
        whole = [_shown(team, team.document[:MAX_DOCUMENT], facts) for team in teams]
        try:
            kept = await fitting_texts(session.model, render(()), max_tokens, whole)
        except PromptTooLong:
            kept = []
        if len(kept) == len(teams):
            return ShownTeams(tuple(teams), tuple(whole))
        summaries = await asyncio.gather(*(self._summary(session, team) for team in teams))
        short = [_shown(team, text, facts) for team, text in zip(teams, summaries, strict=True)]
        kept = await fitting_texts(session.model, render(()), max_tokens, short)
        return ShownTeams(tuple(teams[place] for place in kept), tuple(short[place] for place in kept))

    async def _summary(self, session: Session, team: Team) -> str:
        document = team.document[:MAX_DOCUMENT]
        if len(document) <= SHORT:
            return document
        key = (session.model.name, document)
        if key not in self._summaries:
            try:
                messages = prompts.compress(team.name, document)
                summary = await session.ask(messages, prompts.DocumentSummary, COMPRESS_TOKENS)
            except (InvalidReply, PromptTooLong):
                return beginning(document, SHORT)
            if len(self._summaries) >= MAX_SUMMARIES:
                self._summaries.pop(next(iter(self._summaries)))
            self._summaries[key] = f"Owns: {summary.owns}\nDoes not own: {summary.does_not_own}"
        return self._summaries[key]


def _shown(team: Team, text: str, facts: Known) -> str:
    return prompts.document(team.id, team.name, text, facts.get(team.id, ()))


async def select_group(
    session: Session,
    case: TriageCase,
    from_history: Sequence[Team],
    teams: Sequence[Team],
    documents: TeamDocuments,
    facts: Known,
) -> tuple[Team, ...]:
    """Return at most GROUP teams, the likeliest first.

    `teams` are all that have not turned the incident away, the likeliest first as far as the evidence tells;
    `from_history` are the candidates from history, none once the incident is reassigned. Raises what the model raises.
    """

    async def ranked(pool: Sequence[Team], count: int) -> tuple[Team, ...]:
        if len(pool) <= count:
            return tuple(pool)
        shown = await documents.fitting(
            session, pool, facts, lambda held: prompts.rank(case.text, held, count), RANK_TOKENS
        )
        named = {team.id: team for team in shown.teams}
        messages = prompts.rank(case.text, shown.documents, count)
        reply = await session.ask(messages, prompts.Ranking, RANK_TOKENS, {"teams": tuple(named)})
        return tuple(named[team] for team in dict.fromkeys(reply.teams))

    candidates = {team.id: team for team in (*from_history, *await ranked(teams[:MAX_POOL], FROM_DOCUMENTS))}
    return (await ranked(tuple(candidates.values()), GROUP))[:GROUP]
