"""The chat shows an incident as it is stored: one message, edited in place, and its details in the thread."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from core.confidence.policy import NO_POLICY, Policy
from core.conversation import Place
from core.errors import PlumblineError
from core.incident import Incident, IncidentState
from core.messages import IncidentDetails, IncidentMessage, Notice, OwnerPing
from core.ports import Store
from core.team import Team
from handlers.post_message import Poster
from handlers.update_incident import update_incident

FIRES_AGAIN = "This fires again: the incident is open anew."


async def present_incident(incident_id: str, *, store: Store, poster: Poster, policy: Policy = NO_POLICY) -> None:
    """Post the incident's message, or bring it up to date if it shows something older."""
    intent = f"incident:{incident_id}"
    async with poster.one_at_a_time(intent):
        incident = await _load(incident_id, store)
        reference = await poster.post_or_edit(intent, incident.place, _put(incident, policy), _shown(incident))
        if incident.message != reference:
            await update_incident(incident_id, lambda latest: replace(latest, message=reference), store)
        if incident.reopened_count and incident.state is IncidentState.OPEN:  # an edit alone calls nobody
            thread = replace(reference.place, thread=reference.message_id)
            await poster.post_once(f"reopened:{incident_id}:{incident.reopened_count}", thread, Notice(FIRES_AGAIN))
        for place in incident.also_in:
            await poster.post_or_edit(_copy(intent, place), place, _put(incident, policy), _shown(incident))


async def present_details(incident_id: str, *, store: Store, poster: Poster) -> None:
    """Post the evidence, similar incidents and timeline into the thread of the incident's message."""
    incident = await _load(incident_id, store)
    if incident.message is None:
        raise PlumblineError(f"Incident {incident_id} has no message yet whose thread could hold its details.")
    thread = replace(incident.message.place, thread=incident.message.message_id)
    await poster.post_once(f"details:{incident_id}", thread, IncidentDetails(incident))
    for place in incident.also_in:
        copy = await poster.post_once(_copy(f"incident:{incident_id}", place), place, IncidentMessage(incident))
        thread = replace(copy.place, thread=copy.message_id)
        await poster.post_once(_copy(f"details:{incident_id}", place), thread, IncidentDetails(incident))


async def ping_owner(incident_id: str, *, policy: Policy, teams: Sequence[Team], store: Store, poster: Poster) -> None:
    """Call the owner into the incident's thread if the badge is as high as the policy asks; once for each owner.

    Not for an incident that is over or taken. A team without a mention on the platform is called by its name.
    """
    incident = await _load(incident_id, store)
    proposal, message = incident.owner, incident.message
    if proposal is None or proposal.owner is None or message is None or not policy.pings(proposal.badge):
        return
    if incident.state is not IncidentState.OPEN or incident.taken_by:
        return
    team = next((team for team in teams if team.id == proposal.owner.team_id), None)
    if team is None:
        return
    thread = replace(message.place, thread=message.message_id)
    ping = OwnerPing(team.name, team.mentions.get(thread.platform, ""), proposal.badge)
    await poster.post_once(f"ping:{incident_id}:{team.id}", thread, ping)


def _copy(intent: str, place: Place) -> str:
    """The intent to say the same in another place."""
    return f"{intent}@{place.platform}:{place.channel}"


def _put(incident: Incident, policy: Policy) -> IncidentMessage:
    owner = incident.owner.badge if incident.owner else None
    cause = incident.explanation.badge if incident.explanation else None
    return IncidentMessage(incident, policy.asks(owner), policy.asks(cause))


async def _load(incident_id: str, store: Store) -> Incident:
    async with store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"Incident {incident_id} does not exist (any more).")
    return incident


def _shown(incident: Incident) -> str:
    """Names what the message shows: differs exactly when the message would read differently."""
    visible = replace(incident, revision=0, message=None, updated_at=incident.opened_at)
    return hashlib.blake2b(repr(visible).encode(), digest_size=16).hexdigest()
