"""Link incidents in posts: to the message that the readers of a place may read, or to the local page."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from core.incidents.handover import PostLine
from core.model.conversation import Audience, MessageReference, Place, channel_audience
from core.model.incident import Incident
from core.model.messages import Notice
from handlers.common.ports import Ports
from handlers.common.stored_incident import incident_intent
from handlers.incidents.present_incident import copy_intent


async def linked_notice(
    lines: Sequence[PostLine], incidents: Sequence[Incident], place: Place, audience: Audience, ports: Ports
) -> Notice:
    """Return the lines as a message for this place, linked to the incidents that they name, and to the rest of them."""
    by_id = {each.id: each for each in incidents}
    page = f"{ports.chats.public_url.rstrip('/')}/incidents" if ports.chats.public_url else ""

    async def address(line: PostLine) -> str:
        if line.has_more:
            return page
        incident = by_id.get(line.incident_id)
        if incident is None:
            return ""
        posted = await _message_for(place, incident, audience, ports)
        on_page = f"{page}/{quote(incident.id, safe='')}" if page else ""
        return (await ports.poster.link(posted) if posted is not None else "") or on_page

    return Notice("\n".join(line.text for line in lines), links=tuple([await address(line) for line in lines]))


async def _message_for(place: Place, incident: Incident, audience: Audience, ports: Ports) -> MessageReference | None:
    """Return an incident's message in this channel, else one on its platform that the audience may read."""
    here = next(
        (each for each in incident.also_in if (each.platform, each.channel) == (place.platform, place.channel)), None
    )
    if here is not None:
        async with ports.store.transaction() as transaction:
            return (await transaction.posts.intend(copy_intent(incident_intent(incident.id), here), here)).reference
    posted = incident.message
    if posted is None or posted.place.platform is not place.platform:
        return None
    is_here = posted.place.channel == place.channel
    readers = channel_audience(posted.place, ports.chats.channels).disclosed_to
    return posted if is_here or audience.may_read(readers) else None
