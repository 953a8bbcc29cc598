"""Conversion of closed incidents to history from which later ones are judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.model.incident import Incident, Resolution
from core.model.past_incident import PastIncident
from core.model.team import NOBODY, Team, current_team, means_nobody, team_named


@dataclass(frozen=True, slots=True)
class OwnerLabels:
    """Labels of the last proposed owner: the right team if known, and the wrong teams."""

    right: str = ""
    wrong: frozenset[str] = frozenset()


def closed_incident(
    incident: Incident,
    teams: Sequence[Team],
    readers: frozenset[str],
    labels: OwnerLabels | None = None,
    note_readers: Mapping[str, tuple[frozenset[str], ...]] | None = None,
) -> PastIncident | None:
    """Return an incident as a past incident; None if nothing can be learned from it.

    With a note, the owner is the team that the note names (or nobody), else the team that people last assigned, else
    the team of the person who took the incident, else empty. The bot's own proposals do not count. Without a note, the
    incident must be cured, and people's statements about its owner must agree. `note_readers` are the readers of the
    fields of the note that fewer people may read than the incident.
    """
    note = incident.resolution or Resolution()
    veiled = dict(note_readers or {})
    if incident.resolution is None:
        owner = _undisputed(incident, teams, labels or OwnerLabels())
        if not owner or not incident.is_cured:
            return None
    elif means_nobody(note.owner):
        owner = NOBODY
    else:
        team = team_named(note.owner, teams) or _given_to(incident, teams) or _taken_by(incident, teams)
        owner = team.id if team else ""
        if team_named(note.owner, teams) is None:
            veiled.pop("owner", None)
    return PastIncident(
        id=incident.id,
        title=incident.title,
        description=incident.description,
        service=incident.service,
        severity=incident.severity,
        started_at=incident.started_at,
        owner=owner,
        reassignments=tuple(dict.fromkeys(hop.turned_away for hop in incident.hops if hop.turned_away)),
        resolved_at=incident.resolved_at or incident.updated_at,
        root_cause=note.root_cause,
        fix=note.fix,
        labels=incident.labels,
        readers=readers,
        veiled=veiled,
        root_cause_by=note.root_cause_by,
        fix_by=note.fix_by,
    )


def _undisputed(incident: Incident, teams: Sequence[Team], labels: OwnerLabels) -> str:
    """Return the owner on which assignment, taking person and labels agree; empty if there is none or they disagree."""
    statements = [_given_to(incident, teams), _taken_by(incident, teams), current_team(labels.right, teams)]
    owners = {team.id: team for team in statements if team is not None}
    denied = labels.wrong | incident.turned_away
    if len(owners) != 1:
        return ""
    ((owner, team),) = owners.items()
    return "" if denied.intersection((owner, *team.aliases)) else owner


def _given_to(incident: Incident, teams: Sequence[Team]) -> Team | None:
    return current_team(incident.given_to, teams)


def _taken_by(incident: Incident, teams: Sequence[Team]) -> Team | None:
    """Return the only team that this person belongs to."""
    memberships = [team for team in teams if incident.taken_by and incident.taken_by in team.people]
    return memberships[0] if len(memberships) == 1 else None
