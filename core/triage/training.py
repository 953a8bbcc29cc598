"""Which past incidents say whose incidents are whose today."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.model.incident import PastIncident
from core.model.team import Team, current_ids


def training_incidents(past: Iterable[PastIncident], teams: Sequence[Team]) -> list[PastIncident]:
    """Those whose owner is a team of today, under its present id; without those of teams that are no more."""
    current = current_ids(teams)
    return [replace(incident, owner=current[incident.owner]) for incident in past if incident.owner in current]
