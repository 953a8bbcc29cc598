"""Audiences: the readers that every member of a place holds, and the people who may read what is said there."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.conversation import PUBLIC, Audience, Channel, Person, Place
from core.model.incident import Incident


def channel_audience(place: Place, channels: Sequence[Channel]) -> Audience:
    """Return the audience of a channel: the public, and what is shared with exactly this channel.

    A channel that plumbline.yaml does not name is still a reader under its platform id, so that documents from that
    channel can be shown in it. Its messages are disclosed to the channel only, unless plumbline.yaml names it and does
    not call it private.
    """
    named = [channel for channel in channels if channel.ids.get(place.platform) == place.channel]
    own = frozenset({f"channel:{place.platform}:{place.channel}", *(f"channel:{channel.name}" for channel in named)})
    is_public = bool(named) and not any(channel.private for channel in named)
    return Audience(own | {PUBLIC}, own | {PUBLIC} if is_public else own)


def person_audience(person: Person) -> Audience:
    """Return the audience of a direct message: the public, and what is shared with exactly this person."""
    own = frozenset({f"person:{person.platform}:{person.id}"})
    return Audience(own | {PUBLIC}, own)


def with_outsiders(audience: Audience) -> Audience:
    """Return the audience without the public, for places where people outside the workspace can read."""
    return Audience(audience.readers - {PUBLIC}, audience.disclosed_to - {PUBLIC})


def kept_private(audience: Audience) -> Audience:
    """Return the audience of a place that its platform calls private, whatever plumbline.yaml says."""
    return Audience(audience.readers, audience.disclosed_to - {PUBLIC})


def may_see_incident(audience: Audience, incident: Incident, channels: Sequence[Channel]) -> bool:
    """Return whether this audience may see an incident, which is limited to the readers of its channels."""
    return audience.may_read(incident_audience(incident, channels).disclosed_to)


def incident_audience(incident: Incident, channels: Sequence[Channel]) -> Audience:
    """Return the audience of an incident's message: readers common to all its places, disclosed to each of them."""
    main = channel_audience(incident.place, channels)
    others = [channel_audience(place, channels) for place in incident.also_in]
    return Audience(
        main.readers.intersection(*(each.readers for each in others)),
        main.disclosed_to.union(*(each.disclosed_to for each in others)),
    )
