"""Team managers that a language model plays: the case, the teams that discuss it, their monitoring, and their votes.

Triangle, sections 3.1 to 3.3 and Algorithm 1.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import Vote
from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.context_budget import fit_context
from core.model_calls.prompts import triage as prompts
from core.model_calls.structured_reply import structured
from core.ports import LanguageModel
from core.triage.candidates import FROM_DOCUMENTS, GROUP
from core.triage.documents import rarity

MAX_INCIDENT = 3_000  # characters of the incident that are shown
MAX_DOCUMENT = 6_000  # characters of a team's document that are read
MAX_MONITORING = 4_000  # characters of a team's monitoring that are read
MAX_SUMMARIES = 1_000  # of documents, that are remembered
VOCABULARY = 150  # words of the team documents that are shown, the rarest first
WEIGHTED = 40  # words of the incident shown with their weight

# Room for the longest reply, also where a token is a byte.
DISTIL_TOKENS = 1_300
RANK_TOKENS = 600
COMPRESS_TOKENS = 600
SUMMARY_TOKENS = 2_000
VOTE_TOKENS = 900

NOT_DISTILLED = prompts.Distilled("", (), (), ())

Render = Callable[[Sequence[str]], prompts.Messages]

Monitoring = Callable[[Team], Awaitable[str]]
"""Returns what a team's read-only tools show around the incident; empty where it has none. Untrusted."""


@dataclass(frozen=True, slots=True)
class TriageCase:
    """An incident with its key phrases. `discussion` is what the teams' monitoring shows; it grows as teams join."""

    incident: str
    distilled: prompts.Distilled
    discussion: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the case as it stands in a prompt."""
        found = self.distilled
        lines = (
            ("Where it fails", ", ".join(found.location)),
            ("How it fails", ", ".join(found.symptoms)),
            ("Capability needed", ", ".join(found.capability)),
            ("In the teams' words", found.aligned),
            ("As reported", self.incident),
            *(("Monitoring", shown) for shown in self.discussion),
        )
        # Further lines are indented, so that none of them passes for a line of its own, such as what monitoring shows.
        return "\n".join(f"{label}: {_indented(said)}" for label, said in lines if said)


def _indented(said: str) -> str:
    return "\n  ".join(said.splitlines())


async def distil(model: LanguageModel, request: ModelRequest, incident: str, teams: Sequence[Team]) -> TriageCase:
    """Return the case with the model's key phrases; without any where it gives none.

    Raises ModelUnavailable and PromptTooLong.
    """
    text, rare = incident[:MAX_INCIDENT], rarity(teams)
    counts = Counter(term for term in terms(text) if term in rare)
    weights = {term: count * rare[term] for term, count in counts.items()}  # TF-IDF against the team documents
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:WEIGHTED]
    vocabulary = sorted(rare, key=lambda term: (-rare[term], term))[:VOCABULARY]
    messages = prompts.distil(text, vocabulary, {term: weights[term] for term in heaviest})
    asked = replace(request, messages=messages, max_tokens=DISTIL_TOKENS)
    try:
        return TriageCase(text, await structured(model, asked, prompts.Distilled))
    except InvalidReply:
        return TriageCase(text, NOT_DISTILLED)


@dataclass(frozen=True, slots=True)
class Shown:
    """The teams whose documents fit, and these as they stand in the prompt."""

    teams: tuple[Team, ...]
    documents: tuple[str, ...]


class TeamDocuments:
    """Shows as much of the team documents as fits; remembers summaries until a document is changed."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._summaries: dict[str, str] = {}

    async def fitting(self, teams: Sequence[Team], render: Render, request: ModelRequest) -> Shown:
        """Return the documents of `teams`, best first, that fit into a prompt that `render` makes of them.

        Whole if all fit; otherwise all in short, and then without those at the end that do not fit. Raises
        PromptTooLong, ModelUnavailable and InvalidReply.
        """
        whole = [prompts.document(team.id, team.name, team.document[:MAX_DOCUMENT]) for team in teams]
        kept = await self._kept(whole, render, request)
        if len(kept) < len(teams):
            summaries = await asyncio.gather(*(self._summary(team, request) for team in teams))
            whole = [prompts.document(team.id, team.name, said) for team, said in zip(teams, summaries, strict=True)]
            kept = await self._kept(whole, render, request)
        return Shown(tuple(teams[place] for place in kept), tuple(whole[place] for place in kept))

    async def _kept(self, documents: Sequence[str], render: Render, request: ModelRequest) -> tuple[int, ...]:
        fitted = await fit_context(
            self._model, instructions=render(()), max_tokens=request.max_tokens, evidence=documents
        )
        return fitted.evidence

    async def _summary(self, team: Team, request: ModelRequest) -> str:
        document = team.document[:MAX_DOCUMENT]
        if not document.strip():
            return ""
        if document not in self._summaries:
            messages = prompts.compress(team.name, document)
            asked = replace(request, messages=messages, max_tokens=COMPRESS_TOKENS)
            found = await structured(self._model, asked, prompts.DocumentSummary)
            if len(self._summaries) >= MAX_SUMMARIES:
                self._summaries.pop(next(iter(self._summaries)))
            self._summaries[document] = f"Owns: {found.owns}\nDoes not own: {found.does_not_own}"
        return self._summaries[document]


async def select_group(
    model: LanguageModel,
    request: ModelRequest,
    case: TriageCase,
    from_history: Sequence[Team],
    teams: Sequence[Team],
    documents: TeamDocuments,
) -> tuple[Team, ...]:
    """Return at most GROUP teams, the likeliest first: the Triage Decider.

    `teams` are all that have not turned the incident away, the likeliest first as far as the evidence tells;
    `from_history` are the candidates from history, none once the incident is reassigned. Raises what the model raises.
    """
    request = replace(request, max_tokens=RANK_TOKENS)

    async def ranked(pool: Sequence[Team], count: int) -> tuple[Team, ...]:
        if len(pool) <= count:
            return tuple(pool)
        shown = await documents.fitting(pool, lambda held: prompts.rank(case.text, held, count), request)
        asked = replace(request, messages=prompts.rank(case.text, shown.documents, count))
        known = {team.id: team for team in shown.teams}
        reply = await structured(model, asked, prompts.Ranking, {"teams": tuple(known)})
        return tuple(known[team] for team in dict.fromkeys(reply.teams))

    from_documents = await ranked(teams, FROM_DOCUMENTS)
    candidates = {team.id: team for team in (*from_history, *from_documents)}
    return (await ranked(tuple(candidates.values()), GROUP))[:GROUP]


async def enrich(
    model: LanguageModel, request: ModelRequest, case: TriageCase, team: Team, monitoring: Monitoring
) -> str:
    """Return a paragraph on the team's monitoring; empty where it shows nothing or the model fails."""
    shown = (await monitoring(team))[:MAX_MONITORING]
    if not shown.strip():
        return ""
    messages = prompts.summarise(case.text, team.name, shown)
    asked = replace(request, messages=messages, max_tokens=SUMMARY_TOKENS)
    try:
        found = await structured(model, asked, prompts.MonitoringSummary)
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
    """Return the vote of every manager in the group, asked all at once. One that fails abstains.

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
