"""One round of triage, from an incident to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.incident import Incident
from core.model.team import Team
from core.triage.managers import Enrichment, gather
from core.triage.negotiate import Verdict, negotiate
from core.triage.owner_model import IncidentHistory, OwnerModel, Vector


def propose_owner(
    incident: Incident,
    teams: Sequence[Team],
    history: IncidentHistory,
    enrichment: Enrichment,
    model: OwnerModel | None = None,
    removed: frozenset[str] = frozenset(),
    vector: Vector | None = None,
) -> Verdict:
    """Return the verdict; teams in `removed` turned the incident away in earlier hops."""
    return negotiate(gather(incident, teams, history, enrichment, model, vector=vector), removed)
