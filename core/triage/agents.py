"""Triangle: agents of a language model that find the owner of an incident, the session in which it plays them, and their vote.

The Analyser distils an incident (section 3.2). The Triage Decider names the teams that discuss it, by history and by their
documents (Algorithm 1). The Team Managers see what a team's own monitoring shows, and vote (sections 3.1.1, 3.1.2 and 3.3).

If more than half of the managers of a group vote for one team, it owns the incident. Otherwise those whom nobody votes for
make room for others, for at most MAX_ROUNDS. Then a decider that belongs to no team ends it: one constrained choice among
those voted for in the last round and the candidates of the evidence, weighed against the evidence, or a person is asked.

That choice is all that is asked of a model that finds better than it writes: the managers then report the evidence for their
own team (`core/triage/managers.py`, `core/triage/negotiate.py`), and the decider has the remaining vote.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from core.knowledge.terms import terms
from core.model.badge import Evaluation
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.findings import TeamScore, Vote
from core.model.incident import Incident
from core.model.language_model import ModelRequest
from core.model.team import Team
from core.model_calls.choice import ANY, NONE, Choices, Skill, choose, fitting_texts, structured, weighed
from core.model_calls.metered_model import MeteredModel
from core.model_calls.prompts import Named, beginning
from core.model_calls.prompts import incidents as prompts
from core.model_calls.prompts.incidents import Messages, TriageCase, choose_owner
from core.ports import LanguageModel
from core.triage.candidates import FROM_DOCUMENTS, GROUP, candidates_from_history, rarity
from core.triage.managers import Ground, TriageEvidence
from core.triage.negotiate import (
    INFORMS,
    MAX_ROUNDS,
    MIN_GROUP,
    Verdict,
    evaluate_owner,
    is_weak,
    judge,
    majority,
    may_be_named,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """The calls of all agents of one incident. `request` gives requester, urgency and deadline."""

    model: MeteredModel
    request: ModelRequest

    async def ask(self, messages: Messages, kind: type[T], max_tokens: int, choices: Choices = ANY) -> T:
        """Return a reply of type `kind`. Raises InvalidReply, and the errors of the port."""
        return await structured(
            self.model, replace(self.request, messages=messages, max_tokens=max_tokens), kind, choices
        )


MAX_INCIDENT = 3_000  # characters read of the incident
VOCABULARY = 150  # words of the team documents that are shown, the rarest first
WEIGHTED = 40  # words of the incident shown with their weight
MAX_SERVICES = 100  # that are offered as those that an incident concerns
DISTIL_TOKENS = 1_600  # room for the longest reply, also if a token is a byte

NOT_DISTILLED = prompts.Distilled("", (), (), (), ())


async def distilled_case(session: Session, incident: str, teams: Sequence[Team]) -> TriageCase:
    """Return the incident aligned with the words of the team documents, with its key phrases.

    Words weigh by TF-IDF against these documents. Without key phrases if the model gives none. Raises ModelUnavailable
    and PromptTooLong.
    """
    text, rare = incident[:MAX_INCIDENT], rarity(teams)
    counts = Counter(term for term in terms(text) if term in rare)
    weights = {term: count * rare[term] for term, count in counts.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:WEIGHTED]
    vocabulary = sorted(rare, key=lambda term: (-rare[term], term))[:VOCABULARY]
    services = sorted({service for team in teams for service in team.services})[:MAX_SERVICES]
    messages = prompts.distil(text, vocabulary, {term: weights[term] for term in heaviest}, services)
    try:
        allowed = {"services": services}
        return TriageCase(text, await session.ask(messages, prompts.Distilled, DISTIL_TOKENS, allowed))
    except InvalidReply:
        return TriageCase(text, NOT_DISTILLED)


MAX_DOCUMENT = 6_000  # characters read of a team's document
MAX_POOL = 30  # likeliest teams whose documents are matched
READ_TOKENS = 6_000  # of the team documents in one prompt
SHORT = 400  # characters of a document in place of a summary
RANK_TOKENS = 600
COMPRESS_TOKENS = 600

Render = Callable[[Sequence[str]], prompts.Messages]
Known = Mapping[str, Sequence[str]]  # team id → what the evidence engine knows of it


@dataclass(frozen=True, slots=True)
class ShownTeams:
    """The teams whose documents fit, and these as a prompt shows them: whole or in short."""

    teams: tuple[Team, ...]
    documents: tuple[str, ...]
    are_whole: bool


class TeamDocuments:
    """Shows as much of the team documents as fits. Of a long one in short, its summary is shown once it was compressed."""

    def __init__(self) -> None:
        self._summaries: dict[str, str] = {}

    async def fitting(
        self, session: Session, teams: Sequence[Team], facts: Known, render: Render, max_tokens: int
    ) -> ShownTeams:
        """Return the documents of `teams`, best first, that fit into a prompt that `render` makes of them.

        Whole if all of them have READ_TOKENS at most and fit; otherwise all in short, and then without those that do not
        fit. Raises PromptTooLong and ModelUnavailable.
        """
        whole = [_shown(team, team.document[:MAX_DOCUMENT], facts) for team in teams]
        with suppress(PromptTooLong):
            if len(await fitting_texts(session.model, render(()), max_tokens, whole, READ_TOKENS)) == len(teams):
                return ShownTeams(tuple(teams), tuple(whole), are_whole=True)
        short = [
            _shown(team, self._summaries.get(team.document[:MAX_DOCUMENT]) or beginning(team.document, SHORT), facts)
            for team in teams
        ]
        kept = await fitting_texts(session.model, render(()), max_tokens, short)
        return ShownTeams(tuple(teams[place] for place in kept), tuple(short[place] for place in kept), are_whole=False)

    async def compress(self, model: LanguageModel, request: ModelRequest, teams: Sequence[Team]) -> None:
        """Summarise the long documents, before an incident needs them (algorithm 1). Raises ModelUnavailable."""
        documents = {team.document[:MAX_DOCUMENT]: team.name for team in teams if len(team.document) > SHORT}
        self._summaries = {each: text for each, text in self._summaries.items() if each in documents}
        for document, name in documents.items():
            asking = replace(request, messages=prompts.compress(name, document), max_tokens=COMPRESS_TOKENS)
            with suppress(InvalidReply, PromptTooLong):
                if document not in self._summaries:
                    summary = await structured(model, asking, prompts.DocumentSummary)
                    self._summaries[document] = f"Owns: {summary.owns}\nDoes not own: {summary.does_not_own}"


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
        shown = await documents.fitting(session, pool, facts, lambda held: prompts.rank(case, held, count), RANK_TOKENS)
        named = {team.id: team for team in shown.teams}
        messages = prompts.rank(case, shown.documents, count)
        reply = await session.ask(messages, prompts.Ranking, RANK_TOKENS, {"teams": tuple(named)})
        return tuple(named[team] for team in dict.fromkeys(reply.teams))

    candidates = {team.id: team for team in (*from_history, *await ranked(teams[:MAX_POOL], FROM_DOCUMENTS))}
    # In the order of all prompts, so that they begin with the same documents.
    return tuple(sorted((await ranked(tuple(candidates.values()), GROUP))[:GROUP], key=teams.index))


MAX_MONITORING = 4_000  # characters read of a team's monitoring
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

    Where the incident `names_service`, monitoring is seen from there; else from the team's service that it concerns by what
    the Analyser read.
    """
    concerned = () if names_service else (each for each in case.distilled.services if each in team.services)
    try:
        shown = (await monitoring(team, next(iter(concerned), "")))[:MAX_MONITORING]
        if not shown.strip():
            return ""
        messages = prompts.summarise_monitoring(case, team.name, team.document[:MAX_DOCUMENT], shown)
        summary = await session.ask(messages, prompts.MonitoringSummary, SUMMARY_TOKENS)
    except FAILURES:
        return ""  # the discussion goes on with what the other teams know
    return f"{team.name} ({team.id}): {summary.events} {summary.relation} {summary.suggestions}"


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

    def render(held: Sequence[str]) -> prompts.Messages:
        return prompts.vote(case, held, statements, longest.name, longest.document[:MAX_DOCUMENT])

    shown = await documents.fitting(session, group, facts, render, VOTE_TOKENS)
    own = {} if shown.are_whole else {team.id: team.document[:MAX_DOCUMENT] for team in group}
    choices = {"team": (*(team.id for team in group), prompts.NOBODY)}

    async def vote(team: Team) -> Vote | Exception:
        messages = prompts.vote(case, shown.documents, statements, team.name, own.get(team.id, ""))
        try:
            ballot = await session.ask(messages, prompts.Ballot, VOTE_TOKENS, choices)
        except FAILURES as error:
            return error
        reason = " ".join(ballot.reason.split())  # on one line, which cannot pass for a vote of somebody else's
        read = "\n".join(message.text for message in messages)
        return Vote(
            round_number,
            team.id,
            None if ballot.team == prompts.NOBODY else ballot.team,
            reason if is_supported(reason, read) else "",
            voter_name=team.name,
        )

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


DECIDER_VERSION = "owner-choice-2"  # of the prompt and the weighting; stored with every prediction
PAST = 3  # past incidents that a model reads
DOCUMENT = 400  # characters read of a team's document
LEAST_ROUND = GROUP + 3  # calls: the group is selected, its managers vote, and the decider chooses if they do not agree
WHOLE_ROUND = 2 * GROUP + 3  # calls: their monitoring is summarised as well


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
    vote = Vote(
        max((vote.round for vote in verdict.votes), default=0) + 1,
        "decider",
        best.team_id if best else None,
        f"chose {best.team_name if best else NONE} out of {len(names)} teams, with a probability of {max(distribution):.0%}",
        voter_name=model.name,
    )
    owner = ranked[0] if may_be_named(ranked, verdict.discussion, evidence) else None
    return replace(verdict, owner=owner, candidates=ranked, votes=(*verdict.votes, vote))


def _described(candidate: TeamScore, evidence: TriageEvidence) -> str:
    document = " ".join(evidence.teams[candidate.team_id].document.split())[:DOCUMENT]
    return "\n".join(
        (f"{candidate.team_name}. {document}", *(f"Its manager: {reason}." for reason in candidate.reasons))
    )


AGENTS_VERSION = "owner-agents-2"  # of the prompts and the vote; stored with every prediction


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
        model.left_out["the teams' managers not asked"] = None
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
            model.left_out[f"round {number} of the teams' managers not held"] = None
            break
        group = await select_group(session, case, from_history, teams, documents, facts)
        new = [team for team in group if team.id not in enriched]
        if model.replies_left() < len(new) + len(group) + 1:
            model.left_out[f"the teams' monitoring not summarised in round {number}"] = None
            new = []
        enriched.update(team.id for team in new)
        paragraphs = await asyncio.gather(
            *(enrich(session, case, team, monitoring, names_service=bool(incident.service)) for team in new)
        )
        case = replace(case, discussion=(*case.discussion, *filter(None, paragraphs)))
        last = await collect_votes(session, case, group, documents, facts, last, number)
        votes += last
        winner = majority(last)
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
    silent = (
        (1 - evaluate_owner(verdict).coe) * (1 - INFORMS[Ground.DOCUMENT]) * (1 - INFORMS[Ground.OBSERVED] * monitored)
    )
    return Settled(verdict, Evaluation(1 - silent, candidates[0].score * skill.right), AGENTS_VERSION)


def _voted(candidate: TeamScore, last: Sequence[Vote], share: float) -> TeamScore:
    """Return the candidate with its share of the votes, and the reasons of those who voted for it before its own."""
    reasons = [vote.reason for vote in last if vote.choice == candidate.team_id and vote.reason]
    return replace(candidate, score=share, reasons=tuple(dict.fromkeys([*reasons, *candidate.reasons])))


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
