"""The kinds of Slack conversations by channel id, and their audiences."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call, error_code
from adapters.slack.guests import GuestDirectory
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    Person,
    Place,
    Platform,
    channel_audience,
    kept_private,
    person_audience,
    with_outsiders,
)
from core.model.errors import PlumblineError
from core.ports import Clock

KEPT = timedelta(minutes=1)  # for so long, the kind of a channel is cached
LOOKUP_TIMEOUT = 1.5  # seconds; Slack waits for the acknowledgement of its event

logger = logging.getLogger(__name__)


class ChannelKind(StrEnum):
    CHANNEL = "channel"  # public: its members belong to the workspace
    PRIVATE = "private"  # a private channel or group message: disclosed to its members only
    DIRECT = "direct"  # one person and the bot
    EXTERNAL = "external"  # people of another organisation can read
    ABSENT = "absent"  # the bot is not in it
    UNKNOWN = "unknown"  # Slack did not answer


@dataclass(frozen=True, slots=True)
class _Remembered:
    kind: ChannelKind
    until: datetime


class ChannelDirectory:
    """Looks up the kinds of channels in Slack, and caches them."""

    def __init__(self, client: AsyncWebClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, _Remembered] = {}

    async def kind(self, channel_id: str) -> ChannelKind:
        """Return the kind of a channel; UNKNOWN if Slack does not answer within LOOKUP_TIMEOUT. Does not raise."""
        now = self._clock.now()
        if (known := self._known.get(channel_id)) is not None and now < known.until:
            return known.kind
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                answer = await call("conversations.info", self._client.conversations_info(channel=channel_id))
        except (PlumblineError, TimeoutError) as error:
            if isinstance(error, PlumblineError) and error_code(error) == "channel_not_found":
                return ChannelKind.ABSENT
            logger.warning("Slack does not say who reads channel %s, so nothing public is shown: %s", channel_id, error)
            return ChannelKind.UNKNOWN
        kind = _kind(answer.get("channel", {}))
        self._known[channel_id] = _Remembered(kind, now + KEPT)
        return kind


def audience_of(kind: ChannelKind, place: Place, person: Person, channels: Sequence[Channel]) -> Audience:
    """Return the audience of an answer in a channel of this kind.

    If people of another organisation may read, only what is shared with exactly this channel may be shown.
    """
    if kind is ChannelKind.DIRECT:
        return person_audience(person)
    everybody = channel_audience(place, channels)
    if kind is ChannelKind.PRIVATE:
        return kept_private(everybody)
    return everybody if kind is ChannelKind.CHANNEL else with_outsiders(everybody)


def _kind(channel: dict[str, Any]) -> ChannelKind:
    if channel.get("is_ext_shared") or channel.get("is_pending_ext_shared"):
        return ChannelKind.EXTERNAL
    if channel.get("is_im"):
        return ChannelKind.DIRECT
    if channel.get("is_member") is False:
        return ChannelKind.ABSENT
    if any(channel.get(flag) for flag in ("is_private", "is_group", "is_mpim")):
        return ChannelKind.PRIVATE
    return ChannelKind.CHANNEL if channel.get("is_channel") else ChannelKind.UNKNOWN


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
