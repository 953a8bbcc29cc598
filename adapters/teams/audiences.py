"""The audiences of conversations in Teams."""

from __future__ import annotations

from collections.abc import Iterable

from adapters.teams.activity import Activity
from adapters.teams.connector import TeamsGuests
from adapters.teams.events import person_of, place_of
from core.model.audience import channel_audience, kept_private, person_audience, with_outsiders
from core.model.conversation import Audience, Channel


class TeamsAudiences:
    """Audiences of conversations. `guests` tells where outsiders can read; None in the playground."""

    def __init__(self, channels: Iterable[Channel], guests: TeamsGuests | None) -> None:
        self._channels = tuple(channels)
        self._guests = guests

    async def of(self, activity: Activity) -> Audience:
        """Return the audience of an activity's conversation. Does not raise."""
        personal = activity.is_personal
        audience = (
            person_audience(person_of(activity)) if personal else channel_audience(place_of(activity), self._channels)
        )
        if activity.channel_data.channel.type.lower() == "private":
            audience = kept_private(audience)
        return with_outsiders(audience) if await self._has_outsiders(activity) else audience

    async def _has_outsiders(self, activity: Activity) -> bool:
        if _is_open_to_guests(activity):
            return True
        if self._guests is None:
            return False
        return await self._guests.read_along(activity.service_url, activity.channel, activity.tenant_id)


def _is_open_to_guests(activity: Activity) -> bool:
    """Return whether outsiders may be present: in a shared channel and in a meeting's chat."""
    return activity.channel_data.channel.type.lower() == "shared" or bool(activity.channel_data.meeting)
