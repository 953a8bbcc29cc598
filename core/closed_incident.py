"""An incident that ended with a note on why, as a part of the history that the next ones are judged by."""

from __future__ import annotations

from collections.abc import Sequence

from core.incident import Incident, PastIncident
from core.team import Team, team_named


def closed_incident(incident: Incident, teams: Sequence[Team], readers: frozenset[str]) -> PastIncident | None:
    """The past incident that it became; None without a note.

    Its owner is the team that the note names, else the one that people gave it to last, else the one whose person took
    it, and nobody where none of them tells: what Plumbline itself proposed is no evidence of whose it was.
    """
    note = incident.resolution
    if note is None:
        return None
    owner = team_named(note.owner, teams) or _given_to(incident, teams) or _taken_by(incident, teams)
    return PastIncident(
        id=incident.id,
        title=incident.title,
        description=incident.description,
        service=incident.service,
        severity=incident.severity,
        started_at=incident.started_at,
        owner=owner.id if owner else "",
        reassignments=tuple(dict.fromkeys(hop.turned_away for hop in incident.hops if hop.turned_away)),
        resolved_at=incident.resolved_at or incident.updated_at,
        root_cause=note.root_cause,
        fix=note.fix,
        labels=incident.labels,
        readers=readers,
    )


def _given_to(incident: Incident, teams: Sequence[Team]) -> Team | None:
    last = incident.hops[-1].given_to if incident.hops else ""
    return next((team for team in teams if team.id == last), None)


def _taken_by(incident: Incident, teams: Sequence[Team]) -> Team | None:
    """The only team that has this person on call."""
    found = [team for team in teams if incident.taken_by and incident.taken_by in team.on_call]
    return found[0] if len(found) == 1 else None
