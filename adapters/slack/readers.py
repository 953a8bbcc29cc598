"""The audience of a Slack conversation, including guests and outsiders."""

from __future__ import annotations

from collections.abc import Sequence

from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.channels import ChannelDirectory, ChannelKind, audience_of
from adapters.slack.guests import GuestDirectory
from core.model.audience import with_outsiders
from core.model.conversation import PUBLIC, Audience, Channel, Person, Place, Platform
from core.ports import Clock


class Readers:
    """Looks up channels and guests in Slack. Without an answer in time, the smaller audience is assumed."""

    def __init__(self, client: AsyncWebClient, channels: Sequence[Channel], clock: Clock) -> None:
        self._channels = channels
        self._directory = ChannelDirectory(client, clock)
        self._guests = GuestDirectory(client, clock)

    async def kind(self, channel: str, channel_type: str = "", *, shared: bool = False) -> ChannelKind:
        """Return the kind of a channel, from the event itself if possible. Does not raise."""
        if shared:
            return ChannelKind.EXTERNAL
        return ChannelKind.DIRECT if channel_type == "im" else await self._directory.kind(channel)

    async def audience(self, kind: ChannelKind, place: Place, person: Person) -> Audience:
        """Return the audience of an answer to this person in this place. Does not raise."""
        audience = audience_of(kind, place, person, self._channels)
        if PUBLIC not in audience.readers:
            return audience
        alone = kind is ChannelKind.DIRECT
        guests = self._guests.is_guest(person.id) if alone else self._guests.read_along(place.channel)
        return with_outsiders(audience) if await guests else audience

    async def audience_alone(self, person: Person) -> Audience:
        """Return the audience of this person in private."""
        return await self.audience(ChannelKind.DIRECT, Place(Platform.SLACK, person.id), person)

    async def close(self) -> None:
        await self._guests.close()
