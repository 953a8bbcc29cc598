"""An activity in our terms: who does it, where, and under which idempotency key."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from adapters.teams.activity import Activity
from adapters.teams.references import ConversationReference
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.errors import MalformedInput

# Other reactions say nothing of whether a message is right.
REACTIONS = {"like": True, "heart": True, "yes": True, "angry": False, "no": False}
MILLISECONDS = re.compile(r"1[0-9]{12}")  # since 1970, in this century
EMOJI = (("1f44d", True), ("2705", True), ("1f4af", True), ("1f44e", False), ("274c", False))  # how a name begins


def key_of(activity: Activity) -> str:
    """Raises MalformedInput for an activity without an id."""
    if not activity.id:
        raise MalformedInput("The activity cannot be understood: it has no id.")
    return f"teams:{activity.conversation.id}:{activity.id}"


def person_of(activity: Activity) -> Person:
    """The directory's id where there is one: the id in `from` is another one for every bot."""
    sender = activity.sender
    return Person(Platform.TEAMS, sender.aad_object_id or sender.id, sender.name)


def place_of(activity: Activity) -> Place:
    """A chat without threads is one thread of its own, so that a follow-up is understood there too."""
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


def message_meant(activity: Activity) -> MessageReference:
    """The message that was reacted to, or whose button was pressed."""
    return MessageReference(place_of(activity), activity.reply_to_id)


def said_at(activity: Activity, now: datetime) -> datetime:
    """When the message of an activity was said: its id counts the milliseconds, here as in Microsoft Graph."""
    if not MILLISECONDS.fullmatch(activity.id):
        return now
    return min(datetime.fromtimestamp(int(activity.id) / 1000, UTC), now)


def happened_at(activity: Activity, now: datetime) -> datetime:
    """When Teams says that it happened, which may be a while before it arrives; now, where Teams says nothing credible."""
    try:
        said = datetime.fromisoformat(activity.timestamp)
        return min(said.astimezone(UTC), now) if said.tzinfo is not None else now
    except (ValueError, OverflowError):
        return now


def approves(reaction: str) -> bool | None:
    """Return True if a reaction says yes, False if it says no, None if it says neither."""
    named = next((says for name, says in EMOJI if reaction.startswith(name)), None)
    return REACTIONS.get(reaction, named)
