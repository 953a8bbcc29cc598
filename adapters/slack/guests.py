"""The guests of a Slack workspace: outsiders who see only the channels to which they were invited.

Guests may not read what is for every member of the workspace. A person of another organisation in a shared channel is
not marked as a guest, but has another team id: https://docs.slack.dev/reference/objects/user-object
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import pages
from adapters.slack.identity import BotIdentity
from core.model.errors import PlumblineError
from core.ports import Clock

RENEWED_AFTER = timedelta(minutes=10)  # age at which the list of guests is refreshed
BELIEVED_FOR = timedelta(hours=1)  # maximum age of the list while Slack does not answer
CHANNEL_KEPT = timedelta(minutes=1)  # for so long, it is cached whether a channel has guests
LOOKUP_TIMEOUT = 0.75  # seconds for each of two requests; Slack waits 3 s for the acknowledgement of its event
PAGE = 1_000  # people per request
MAX_CHANNELS = 1_000  # channels cached

GUEST = ("is_restricted", "is_ultra_restricted", "is_stranger")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _People:
    guests: frozenset[str]
    members: frozenset[str]
    read_at: datetime


class GuestDirectory:
    """Looks up guests in Slack. If Slack does not answer in time, a person counts as a guest."""

    def __init__(self, client: AsyncWebClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._identity = BotIdentity(client)
        self._people: _People | None = None
        self._reading: asyncio.Task[None] | None = None
        self._channels: dict[str, tuple[bool, datetime]] = {}

    async def is_guest(self, user_id: str) -> bool:
        """Return whether this person is or may be a guest, like everybody unknown to Slack. Does not raise."""
        people = await self._known()
        return people is None or user_id not in people.members

    async def read_along(self, channel_id: str) -> bool:
        """Return whether a member of the channel is or may be a guest. Does not raise."""
        people = await self._known()
        if people is None or not people.guests:
            return people is None
        now = self._clock.now()
        if (known := self._channels.get(channel_id)) is not None and now < known[1]:
            return known[0]
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                found = not people.guests.isdisjoint(await self._members("conversations.members", channel=channel_id))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("Slack does not say who is in channel %s, so nothing public is shown: %s", channel_id, error)
            return True
        if len(self._channels) >= MAX_CHANNELS:
            self._channels.clear()
        self._channels[channel_id] = found, now + CHANNEL_KEPT
        return found

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _known(self) -> _People | None:
        """Return the known people; None before the first answer.

        Reading goes on in the background for large workspaces.
        """
        age = self._clock.now() - self._people.read_at if self._people else BELIEVED_FOR
        if age >= RENEWED_AFTER:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
            await asyncio.wait([self._reading], timeout=LOOKUP_TIMEOUT if age >= BELIEVED_FOR else 0)
        known = self._people
        return known if known and self._clock.now() - known.read_at < BELIEVED_FOR else None

    async def _read(self) -> None:
        try:
            own = await self._identity()
            people = await self._members("users.list")
        except PlumblineError as error:
            logger.warning("Slack does not say who is a guest, so nothing public is shown: %s", error)
            return
        guests = frozenset(person["id"] for person in people if _is_outsider(person, own))
        members = frozenset(person["id"] for person in people) - guests
        self._people = _People(guests, members, self._clock.now())
        self._channels.clear()

    async def _members(self, method: str, **arguments: str) -> list[Any]:
        read = pages(self._client, method, {"limit": PAGE, **arguments})
        return [member async for page in read for member in page.get("members", ())]


def _is_outsider(person: dict[str, Any], own: AuthorizeResult) -> bool:
    enterprise = (person.get("enterprise_user") or {}).get("enterprise_id")
    is_of_team = person.get("team_id", own.team_id) == own.team_id or (enterprise and enterprise == own.enterprise_id)
    return not is_of_team or any(person.get(flag) for flag in GUEST)
