"""Build a person's home page from what they may read."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.audience import may_see_incident
from core.model.conversation import PUBLIC, Audience, Channel
from core.model.home import Home, KnownSource
from core.model.incident import Incident, IncidentState
from core.model.team import Team
from core.ports import PassageIndex, Store
from handlers.questions.show_help import ABOUT, EVERYWHERE

LOOKED_AT = 200  # latest incidents searched for open ones


async def home_of(
    names: Sequence[str],
    audience: Audience,
    *,
    channels: Sequence[Channel],
    teams: Sequence[Team],
    settings: Sequence[tuple[str, str]],
    store: Store,
    index: PassageIndex,
) -> Home:
    """Return the home page of the person known by `names`. Only `audience` reads it.

    Sources and settings are shown to workspace members, not to guests.
    """
    async with store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        ingestions = await transaction.ingestions.all()
    known = {name.casefold() for name in names if name}
    opened = [
        incident
        for incident in recent
        if incident.state is IncidentState.OPEN and may_see_incident(audience, incident, channels)
    ]
    mine = [incident for incident in opened if _belongs_to(incident, known, teams)]
    belongs = PUBLIC in audience.readers
    return Home(
        mine=tuple(mine),
        others=tuple(incident for incident in opened if incident not in mine),
        passages=await index.count() if belongs else 0,
        sources=tuple(
            KnownSource(each.source, each.documents, each.finished_at, not each.failure)
            for each in (ingestions if belongs else ())
        ),
        settings=tuple(settings) if belongs else (),
        can=(ABOUT, *EVERYWHERE),
    )


def _belongs_to(incident: Incident, names: set[str], teams: Sequence[Team]) -> bool:
    """Return whether one of these names took the incident, or is on call for the proposed team of an untaken one."""
    if incident.taken_by:
        return incident.taken_by.casefold() in names
    owner = incident.owner.owner if incident.owner is not None else None
    team = next((team for team in teams if owner is not None and team.id == owner.team_id), None)
    return team is not None and any(name.casefold() in names for name in team.on_call)
