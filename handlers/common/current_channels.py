"""The channels as they are now: the narrower of what their chat says and what plumbline.yaml says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from core.model.conversation import Channel, Place, Platform, channel_reader
from core.model.errors import PlumblineError
from core.ports import Clock, OpenToAll

KEPT = timedelta(minutes=1)  # how long an answer is cached: the age at which a channel still counts as public
SILENCE = timedelta(seconds=5)  # how long the channel of a failed look-up counts as private without another one
TIMEOUT = 1.5  # seconds; chats wait three for the acknowledgement of some events

log = structlog.get_logger()


class OpenChannels:
    """Looks up in one chat whether the whole workspace may read a channel, and caches the answers."""

    def __init__(self, look_up: OpenToAll, clock: Clock) -> None:
        self._look_up = look_up
        self._clock = clock
        self._known: dict[Place, tuple[bool, datetime]] = {}

    async def is_open(self, place: Place) -> bool:
        """Return whether the whole workspace may read a channel; False if the chat does not tell. Does not raise."""
        is_open, until = self._known.get(place, (False, None))
        now = self._clock.now()
        if until is not None and now < until:
            return is_open
        kept = KEPT
        try:
            async with asyncio.timeout(TIMEOUT):
                is_open = await self._look_up(place)
        except (PlumblineError, TimeoutError) as error:
            is_open, kept = False, SILENCE
            log.warning("channel counts as private", place=place.channel, reason=str(error) or "The chat is too slow.")
        self._known[place] = is_open, now + kept
        return is_open


async def current_channels(
    readers: Iterable[str], channels: Sequence[Channel], openness: Mapping[Platform, OpenToAll]
) -> list[Channel]:
    """Return the channels as they are now, with one id each.

    Those with these reader names are looked up. A channel that is not looked up, or whose chat does not answer, is
    private. On a platform without a look-up, plumbline.yaml tells it.
    """
    looked_up = frozenset(readers)

    async def is_private(channel: Channel, place: Place) -> bool:
        if channel.private or place.platform not in openness:
            return channel.private
        return channel_reader(place) not in looked_up or not await openness[place.platform](place)

    ids = [(channel, place) for channel in channels for place in channel.places]
    private = await asyncio.gather(*(is_private(*each) for each in ids))
    return [
        Channel(channel.name, {place.platform: place.channel}, is_closed)
        for (channel, place), is_closed in zip(ids, private, strict=True)
    ]
