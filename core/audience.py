"""What may be read in a place: the readers that every one of its members holds."""

from __future__ import annotations

from collections.abc import Iterable

from core.conversation import PUBLIC, Audience, Channel, Person, Place


def channel_audience(place: Place, channels: Iterable[Channel]) -> Audience:
    """The audience of a channel: the public, and what is shared with exactly this channel.

    A channel that plumbline.yaml does not name still is a reader under its platform's own id, so that documents
    taken from that very channel can be shown in it.
    """
    readers = {PUBLIC, f"channel:{place.platform}:{place.channel}"}
    readers |= {f"channel:{channel.name}" for channel in channels if channel.ids.get(place.platform) == place.channel}
    return Audience(frozenset(readers))


def person_audience(person: Person) -> Audience:
    """The audience of a direct message: the public, and what is shared with exactly this person."""
    return Audience(frozenset({PUBLIC, f"person:{person.platform}:{person.id}"}))
