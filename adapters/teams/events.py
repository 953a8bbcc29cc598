"""Conversion of activities to domain types: person, place, time and idempotency key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from adapters.teams.activity import Activity
from adapters.teams.connector import TeamsGuests
from adapters.teams.references import ConversationReference, ConversationReferences, recall
from core.model.conversation import (
    Audience,
    Channel,
    MessageReference,
    Person,
    Place,
    Platform,
    channel_audience,
    kept_private,
    person_audience,
    with_outsiders,
)
from core.model.errors import MalformedInput, StoreUnavailable

# Other reactions neither approve nor disapprove.
REACTIONS = {"like": True, "heart": True, "yes": True, "angry": False, "no": False}
MILLISECONDS = re.compile(r"1[0-9]{12}")  # since 1970, in this century
EMOJI = (("1f44d", True), ("2705", True), ("1f4af", True), ("1f44e", False), ("274c", False))  # prefixes of names


def key_of(activity: Activity) -> str:
    """Return the idempotency key. Raises MalformedInput for an activity without an id."""
    if not activity.id:
        raise MalformedInput("The activity is not valid: it has no id.")
    return f"teams:{activity.conversation.id}:{activity.id}"


def person_of(activity: Activity) -> Person:
    """Return the person, by the directory's id if available, because the id in `from` differs for every bot."""
    sender = activity.sender
    return Person(Platform.TEAMS, sender.aad_object_id or sender.id, sender.name)


def place_of(activity: Activity) -> Place:
    """Return the place. A chat without threads is one thread, so that follow-up questions work there."""
    return Place(Platform.TEAMS, activity.channel, activity.thread or activity.channel, activity.tenant_id)


def reference_of(activity: Activity) -> ConversationReference:
    threaded = bool(activity.thread) or activity.conversation.conversation_type == "channel"
    is_by_person = activity.is_personal and activity.sender.role != "bot"
    return ConversationReference(
        activity.service_url,
        activity.tenant_id,
        threaded,
        activity.is_personal,
        activity.channel_data.team.id,
        person_of(activity).id if is_by_person else "",
    )


def target_message(activity: Activity) -> MessageReference:
    """Return the message that was reacted to, or whose button was pressed."""
    return MessageReference(place_of(activity), activity.reply_to_id)


def written_at(activity: Activity, now: datetime) -> datetime:
    """Return when the message was written: its id contains milliseconds, as in Microsoft Graph."""
    return (
        min(datetime.fromtimestamp(int(activity.id) / 1000, UTC), now) if MILLISECONDS.fullmatch(activity.id) else now
    )


def happened_at(activity: Activity, now: datetime) -> datetime:
    """Return the event's time according to Teams, which may be earlier than its arrival; `now` if that is implausible."""
    try:
        timestamp = datetime.fromisoformat(activity.timestamp)
        return min(timestamp.astimezone(UTC), now) if timestamp.tzinfo is not None else now
    except (ValueError, OverflowError):
        return now


def approves(reaction: str) -> bool | None:
    """Return True if a reaction approves, False if it disapproves, None otherwise."""
    return REACTIONS.get(reaction, next((says for name, says in EMOJI if reaction.startswith(name)), None))


class TeamsAudiences:
    """Audiences of conversations. `guests` tells where outsiders can read; None in the playground."""

    def __init__(
        self, channels: Iterable[Channel], guests: TeamsGuests | None, references: ConversationReferences
    ) -> None:
        self._channels = tuple(channels)
        self._guests = guests
        self._references = references

    async def at(self, place: Place) -> Audience:
        """Return the audience of a place. If it cannot be looked up, outsiders are assumed. Does not raise."""
        audience = channel_audience(place, self._channels)
        if self._guests is None:
            return audience
        try:
            home = await recall(self._references, place.channel, place.workspace)
        except StoreUnavailable:
            home = None
        if home is None or await self._guests.read_along(home.service_url, place.channel, home.tenant_id):
            return with_outsiders(audience)
        return audience

    async def of(self, activity: Activity) -> Audience:
        """Return the audience of an activity's conversation. Does not raise."""
        audience = (
            person_audience(person_of(activity))
            if activity.is_personal
            else channel_audience(place_of(activity), self._channels)
        )
        if activity.is_restricted:
            audience = kept_private(audience)
        # Outsiders may be present in a shared channel and in a meeting's chat.
        shared = activity.channel_data.channel.type.lower() == "shared"
        has_outsiders = shared or bool(activity.channel_data.meeting)
        if not has_outsiders and self._guests is not None:
            has_outsiders = await self._guests.read_along(activity.service_url, activity.channel, activity.tenant_id)
        return with_outsiders(audience) if has_outsiders else audience
