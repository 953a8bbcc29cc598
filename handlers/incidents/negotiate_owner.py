"""Owner negotiation in which a language model plays the team managers, who consult their own monitoring."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import Incident
from core.model.language_model import ModelRequest, Urgency
from core.ports import LanguageModel
from core.triage.managers import TriageEvidence
from core.triage.model_managers import TeamDocuments
from core.triage.model_negotiation import Negotiation, negotiate_with_model
from core.triage.negotiate import Verdict
from handlers.incidents.team_monitoring import Observe, TeamMonitoring

DEADLINE = 120.0  # seconds that one reply may take

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Negotiator:
    """Inputs of the team managers: a model, the team documents and the findings of monitoring."""

    model: LanguageModel
    documents: TeamDocuments
    observe: Observe


async def negotiate_owner(
    incident: Incident,
    text: str,
    evidence: TriageEvidence,
    verdict: Verdict,
    negotiator: Negotiator,
    removed: frozenset[str],
) -> Negotiation | None:
    """Let the managers of all teams except `removed` negotiate, and return the result.

    Returns None if the model failed; the evidence engine's verdict then applies.
    """
    request = ModelRequest((), urgency=Urgency.INCIDENT, requester=incident.id, deadline=DEADLINE)
    monitoring = TeamMonitoring(incident, negotiator.observe)
    try:
        return await negotiate_with_model(
            negotiator.model,
            request,
            text,
            evidence,
            verdict,
            negotiator.documents,
            monitoring.describe,
            removed,
        )
    except (ModelUnavailable, InvalidReply, PromptTooLong) as error:
        log.warning("triage without the language model", incident=incident.id, reason=str(error))
        return None
