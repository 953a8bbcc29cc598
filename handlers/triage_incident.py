"""Whose incident is it: the owner proposed from history, team documents, ownership and, once known, the cause."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from core.confidence.owner_evidence import VERSION, evaluate_owner
from core.confidence.prediction import PredictionKind
from core.incident import Incident, OwnerProposal, Stage
from core.ports import Clock, Store
from core.team import Team
from core.triage.enrichment import from_explanation
from core.triage.history import IncidentHistory
from core.triage.negotiate import Verdict, propose_owner
from core.triage.owner_model import OwnerModel
from handlers.record_prediction import record_prediction

ENGINE = "evidence"  # from the incident's text
ENRICHED_ENGINE = "evidence+monitoring"  # with the cause that monitoring points at; calibrated on its own


async def triage_incident(
    incident: Incident,
    *,
    teams: Sequence[Team],
    history: IncidentHistory,
    store: Store,
    clock: Clock,
    model: OwnerModel | None = None,
) -> Incident:
    """The incident with an owner proposed, and at its next stage.

    Run again once the incident is explained, the proposal is revised in the light of the cause (Triangle, section
    3.3): a loud symptom in one team's service no longer outvotes the measured cause in another's. `model` is what was
    learned from the history, None as long as it is too short.
    """
    enrichment = from_explanation(incident.explanation)
    verdict = await asyncio.to_thread(propose_owner, incident, teams, history, enrichment, model)
    proposal = await _recorded(
        verdict, incident, ENRICHED_ENGINE if enrichment.services else ENGINE, teams, store=store, clock=clock
    )
    stage = Stage.EXPLAINING if incident.explanation is None else Stage.DONE
    return replace(incident, owner=proposal, stage=stage)


async def _recorded(
    verdict: Verdict, incident: Incident, engine: str, teams: Sequence[Team], *, store: Store, clock: Clock
) -> OwnerProposal:
    owner = verdict.owner
    prediction_id, badge = await record_prediction(
        PredictionKind.OWNER,
        incident.id,
        owner.team_id if owner else "",
        evaluate_owner(verdict),
        engine=engine,
        estimator_version=VERSION,
        store=store,
        clock=clock,
    )
    on_call = next((team.on_call for team in teams if owner and team.id == owner.team_id), ())
    return OwnerProposal(owner, verdict.candidates, on_call, badge, prediction_id, verdict.votes)
