"""Triage: propose an incident's owner from history, team documents, ownership and, once known, the cause.

A team's manager votes by the monitoring data of its services (Triangle, section 3.3).

With an embedding model, incidents are compared by vectors too; without one, by their words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog
from numpy.typing import NDArray

from core.confidence.model_estimator import Claim, settled_case
from core.knowledge.terms import terms
from core.model.badge import Estimator, Evaluation, PredictionKind
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.findings import AskedTeam, OwnerProposal, PastIncident, TeamScore, Vote
from core.model.incident import Incident, Stage
from core.model.language_model import ModelRequest, Urgency
from core.model.running import run_in_analysis_thread
from core.model.team import Team, current_team
from core.model_calls.choice import Skill, Use
from core.model_calls.metered_model import MeteredModel
from core.ports import Embedder, LanguageModel
from core.rca.incident_signals import IncidentSignals, survey
from core.rca.observation_tools import observation_tools
from core.rca.observations import Observations
from core.triage.agents import Dispute, Session, needs_model, nothing_monitored, settled_by_model
from core.triage.managers import (
    Enrichment,
    TeamFinding,
    TriageEvidence,
    finding_of,
    from_explanation,
    gather,
    precedents,
)
from core.triage.negotiate import (
    NO_OWNER_SHARE,
    Verdict,
    evaluate_owner,
    is_weak,
    negotiate,
    negotiate_in_rounds,
    version_with,
)
from core.triage.owner_model import Embeddings, IncidentHistory, OwnerModel, Vector, digest_of, embedded_text
from handlers.common.ports import Ports
from handlers.common.record_prediction import estimate_confidence, is_likelier, record_prediction
from handlers.incidents.ping_owner import find_on_call

ENGINE = "evidence"  # uses the incident's text
ENRICHED_ENGINE = "evidence+monitoring"  # also uses the cause found by monitoring; calibrated separately
JUDGED_BY = 8  # similar past incidents behind a badge
ASKED = 2  # candidate teams asked if no owner can be named

WITHOUT_MODEL = "The language model gave no usable answer."
NEW_TEAM = "The service belongs to {names}, but I know no past incidents of theirs. A person should decide."
NO_OWNER_BEFORE = "Most of the similar incidents belonged to no team. A person should decide."
NO_MAJORITY = "The teams did not agree, even with their monitoring. A person should decide."

log = structlog.get_logger()


async def triage_incident(
    incident: Incident,
    ports: Ports,
    *,
    history: IncidentHistory,
    observe: Observe | None = None,
) -> Incident:
    """Return the incident with a proposed owner, at its next stage. An owner chosen by a person is kept while it
    exists.

    When run again after the explanation, the cause revises the proposal (Triangle, section 3.3): a loud symptom in one
    team's service no longer outvotes the measured cause in another's.

    - `observe` lets the managers of the teams consult their own monitoring and vote in rounds.
    - If they do not agree, a language model that passed its exam plays the managers, or decides alone if it finds better
      than it writes. Its owner is shown unless people's verdicts are against it.
    """
    teams = await ports.ownership.current_teams() if ports.ownership.current_teams is not None else ports.company.teams
    is_done = incident.stage is Stage.DONE or incident.findings.explanation is not None
    stage = Stage.DONE if is_done else Stage.EXPLAINING
    if incident.findings.owner is not None and current_team(incident.given_to, teams) is not None:
        return replace(incident, stage=stage)
    enrichment = from_explanation(incident, ports.company.dependencies, teams)
    owners = await ports.ownership.owner_models.load() if ports.ownership.owner_models is not None else None
    vector = await embed_incident(incident, owners, ports.ownership.embedder)

    async def gathered(enrichment: Enrichment) -> TriageEvidence:
        return await run_in_analysis_thread(
            gather, incident, teams, history, enrichment, owners, ports.company.code, vector
        )

    # Under their current ids: teams may have been renamed since.
    removed = frozenset(team.id for each in incident.turned_away if (team := current_team(each, teams)) is not None)
    monitoring = TeamMonitoring(incident, observe) if observe is not None else None
    if monitoring is not None:
        settled = await negotiate_in_rounds(gathered, enrichment, monitoring.finding, removed)
        verdict, evidence, enrichment = settled.verdict, settled.evidence, settled.enrichment
    else:
        evidence = await gathered(enrichment)
        verdict = await run_in_analysis_thread(negotiate, evidence, removed)
    measured_by = version_with(ports.ownership.embedder.name if ports.ownership.embedder and vector is not None else "")
    decision = _from_evidence(verdict, evidence, enrichment, measured_by)
    examined = ports.models.examined
    skill = examined.skill(Use.OWNERS) if examined is not None else None
    dispute = Dispute(incident, verdict, evidence, enrichment.text, removed)
    if examined is not None and skill is not None and needs_model(dispute, skill):
        decision = await _settled(decision, dispute, examined.model, skill, monitoring, ports)
    decision = await _judged(decision, incident, evidence, ports.models.judge)
    return replace(incident.with_findings(owner=await _recorded(decision, incident, evidence, ports)), stage=stage)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A decision that is not recorded yet. If an owner is `named`, it is the first of the `candidates`."""

    candidates: tuple[TeamScore, ...]
    named: bool
    votes: tuple[Vote, ...]
    evaluation: Evaluation
    engine: str
    version: str
    note: str = ""


def _from_evidence(verdict: Verdict, evidence: TriageEvidence, enrichment: Enrichment, version: str) -> _Decision:
    return _Decision(
        verdict.candidates,
        named=verdict.owner is not None,
        votes=verdict.votes,
        evaluation=evaluate_owner(verdict),
        engine=ENRICHED_ENGINE if enrichment != Enrichment() else ENGINE,
        version=version,
        note=_reason_for_no_owner(verdict, evidence),
    )


def _reason_for_no_owner(verdict: Verdict, evidence: TriageEvidence) -> str:
    """Return the reason why no owner is named; empty if the evidence is merely weak."""
    if verdict.owner is not None:
        return ""
    if evidence.nobody >= NO_OWNER_SHARE:
        return NO_OWNER_BEFORE
    if evidence.new_owners and verdict.candidates and verdict.candidates[0].team_id not in evidence.new_owners:
        return NEW_TEAM.format(names=" and ".join(sorted(evidence.teams[team].name for team in evidence.new_owners)))
    return NO_MAJORITY if any(vote.round > 1 for vote in verdict.votes) else ""


async def _settled(
    decision: _Decision,
    dispute: Dispute,
    model: LanguageModel,
    skill: Skill,
    monitoring: TeamMonitoring | None,
    ports: Ports,
) -> _Decision:
    """Return the model's proposal; `decision` with a note if the model fails, or as it is if verdicts are against it."""
    incident = dispute.incident
    seconds = ports.models.limits.seconds
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=seconds)
    session = Session(MeteredModel(model, ports.models.limits), request)
    shown = monitoring.describe if monitoring is not None else nothing_monitored
    try:
        async with asyncio.timeout(seconds):
            settled = await settled_by_model(dispute, session, skill, ports.ownership.documents, shown)
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError) as error:
        log.warning("owner not decided by the language model", incident=incident.id, reason=str(error) or "too slow")
        return replace(decision, note=f"{decision.note} {WITHOUT_MODEL}".strip())
    verdict = settled.verdict
    claim = Estimator(PredictionKind.OWNER, model.name, settled.version), settled.evaluation
    if not await is_likelier(claim, None, ports.store):
        return decision
    named = verdict.owner is not None
    if decision.named and not named and not is_weak(dispute.verdict):
        return decision
    note = "" if named else decision.note
    return _Decision(verdict.candidates, named, verdict.votes, settled.evaluation, model.name, settled.version, note)


async def _judged(
    decision: _Decision, incident: Incident, evidence: TriageEvidence, judge: LanguageModel | None
) -> _Decision:
    if judge is None or not decision.candidates:
        return decision
    evaluation, version = await estimate_confidence(
        Claim(incident.id, incident.description, f"Owner: {decision.candidates[0].team_name}", incident.started_at),
        [settled_case(neighbour.incident) for neighbour in evidence.neighbours[:JUDGED_BY]],
        (decision.evaluation, decision.version),
        model=judge,
        urgency=Urgency.INCIDENT,
        requester=incident.id,
    )
    return replace(decision, evaluation=evaluation, version=version)


async def _recorded(decision: _Decision, incident: Incident, evidence: TriageEvidence, ports: Ports) -> OwnerProposal:
    owner = decision.candidates[0] if decision.named else None
    prediction_id, badge = await record_prediction(
        PredictionKind.OWNER,
        incident.id,
        owner.team_id if owner else "",
        decision.evaluation,
        ports,
        engine=decision.engine,
        estimator_version=decision.version,
        group=owner.team_id if owner else "",
        references=tuple(neighbour.incident.id for neighbour in evidence.neighbours[:JUDGED_BY]),
        hop=len(incident.hops),
    )
    proposal = OwnerProposal(
        owner,
        decision.candidates,
        (),
        badge,
        prediction_id,
        _with_earlier_hops(decision.votes, incident),
        decision.note,
        precedents=precedents(evidence, owner.team_id if owner else None, incident.findings.explanation),
    )
    nearest = [owner] if owner else [each for each in decision.candidates if each.score > 0][:ASKED]
    reached = await _with_on_call(nearest, evidence, ports)
    if owner is None:
        return replace(proposal, asked=reached)
    return replace(proposal, on_call=reached[0].on_call, on_call_unknown=reached[0].on_call_unknown)


async def _with_on_call(teams: Sequence[TeamScore], evidence: TriageEvidence, ports: Ports) -> tuple[AskedTeam, ...]:
    """Return the teams with their on-call people. A schedule that cannot answer is named instead."""
    at = ports.clock.now()
    on_call = await asyncio.gather(
        *(find_on_call(evidence.teams[team.team_id], ports.company.schedules, at) for team in teams)
    )
    return tuple(
        AskedTeam(team.team_id, team.team_name, people, unknown)
        for team, (people, unknown) in zip(teams, on_call, strict=True)
    )


def _with_earlier_hops(votes: Sequence[Vote], incident: Incident) -> tuple[Vote, ...]:
    """Return the votes from before the last hop, followed by the new votes."""
    hop = len(incident.hops)
    before = incident.findings.owner.votes if incident.findings.owner is not None else ()
    return (*(vote for vote in before if vote.hop < hop), *(replace(vote, hop=hop) for vote in votes))


MAX_SERVICES = 4  # of a team, described to a language model
READ = ("read_logs", "read_metrics", "list_changes")  # tools whose output a manager reads

Observe = Callable[[Incident], Awaitable[Observations]]
"""Reads the monitoring systems around an incident; unreadable systems are recorded as gaps."""


class TeamMonitoring:
    """Read-only monitoring around one incident.

    If the incident names no service, the team's service with the most similar name is used.
    """

    def __init__(self, incident: Incident, observe: Observe) -> None:
        self._incident = incident
        self._observe = observe
        self._observed: dict[str, asyncio.Future[tuple[Observations, IncidentSignals]]] = {}

    async def finding(self, team: Team) -> TeamFinding:
        """Return the monitoring data of a team as numbers and quotes.

        Raises ToolUnavailable if none of its tools can be read.
        """
        if not team.services:
            return TeamFinding()
        observations, incident_signals = await self._seen_by(team)
        failed = [gap.text for gap in observations.gaps if gap.reason.is_failure]
        if failed and not (observations.logs or observations.series or observations.changes):
            self._observed.clear()  # read again at the next request
            raise ToolUnavailable("; ".join(failed))
        return finding_of(team, self._incident, observations, incident_signals)

    async def describe(self, team: Team, service: str) -> str:
        """Return the monitoring data of a team as text for a language model, seen from `service` unless it is empty.

        Empty if the team has none. Systems that could not be read are named.
        """
        if not team.services:
            return ""
        observations, incident_signals = await (self._seen_from(service) if service else self._seen_by(team))
        own = [each for each in observations.services if each in team.services][:MAX_SERVICES]
        tools = [tool for tool in observation_tools(observations, incident_signals) if tool.name in READ]
        parts = [f"{each}, {tool.name}:\n{await tool.call({'service': each})}" for each in own for tool in tools]
        return "\n".join([*parts, *(gap.text for gap in observations.gaps if gap.reason.is_failure)])

    async def _seen_by(self, team: Team) -> tuple[Observations, IncidentSignals]:
        observations, incident_signals = await self._seen_from(self._incident.service)
        if team.services and not team.services.intersection(observations.services):
            observations, incident_signals = await self._seen_from(_nearest(team, self._incident))
        return observations, incident_signals

    async def _seen_from(self, service: str) -> tuple[Observations, IncidentSignals]:
        if service not in self._observed:
            self._observed[service] = asyncio.ensure_future(self._look(service))
        return await self._observed[service]

    async def _look(self, service: str) -> tuple[Observations, IncidentSignals]:
        observations = await self._observe(replace(self._incident, service=service))
        return observations, await asyncio.to_thread(survey, observations)


def _nearest(team: Team, incident: Incident) -> str:
    words = set(terms(incident.description))
    return min(team.services, key=lambda service: (-len(words & set(terms(service))), service))


BATCH = 64  # texts per embedding call
EMBEDDING_DEADLINE = 5.0  # seconds that triage waits for the incident's embedding


async def embed_past_incidents(
    incidents: Sequence[PastIncident], embedder: Embedder, earlier: Embeddings | None = None
) -> Embeddings:
    """Return the vectors of all incidents, reusing those of `earlier` from the same model.

    Raises ModelUnavailable.
    """
    texts = await asyncio.to_thread(_texts, incidents)
    vectors_by_text: dict[bytes, Vector] = {}
    if earlier is not None and earlier.embedder == embedder.name:
        vectors_by_text = {
            digest: vector
            for digest, vector in earlier.vectors.items()
            if digest in texts and vector.shape == (embedder.dimensions,)
        }
    # A batch is padded to its longest text, so texts of similar length are embedded together.
    new = sorted((digest for digest in texts if digest not in vectors_by_text), key=lambda digest: len(texts[digest]))
    for begin in range(0, len(new), BATCH):
        batch = new[begin : begin + BATCH]
        vectors = await embedder.embed_passages([texts[digest] for digest in batch])
        _check(vectors, (len(batch), embedder.dimensions), embedder)
        vectors_by_text |= zip(batch, vectors, strict=True)
    return Embeddings(embedder.name, vectors_by_text)


async def embed_incident(incident: Incident, model: OwnerModel | None, embedder: Embedder | None) -> Vector | None:
    """Return the incident's vector, if the model learned from vectors of this embedder and it answers in time."""
    if model is None or model.embedding is None or embedder is None or model.embedding.embedder != embedder.name:
        return None
    try:
        async with asyncio.timeout(EMBEDDING_DEADLINE):
            vector = await embedder.embed_query(embedded_text(incident))
        _check(vector, model.embedding.vectors.shape[1:], embedder)
    except (ModelUnavailable, TimeoutError) as error:
        log.warning("triage_without_embedding", incident=incident.id, error=str(error) or "It did not answer in time.")
        return None
    return vector


def _texts(incidents: Sequence[PastIncident]) -> dict[bytes, str]:
    return {digest_of(text): text for text in map(embedded_text, incidents)}


def _check(vectors: NDArray[np.float32], shape: tuple[int, ...], embedder: Embedder) -> None:
    if vectors.shape != shape or not np.isfinite(vectors).all():
        raise ModelUnavailable(f"The embedding model {embedder.name} gave no usable vectors.")
