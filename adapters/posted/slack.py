"""Read a message of another bot in Slack: its text, blocks and attachments, with what is only coloured or linked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from adapters.posted.cards import Shown, objects
from adapters.slack.blocks import ACTION_PREFIX, plain_text
from adapters.slack.client import EVENT_TYPE, BotIdentity, call
from core.model.alert import Posted
from core.model.conversation import Place, Platform
from core.model.errors import MessageNotFound

_LINK = re.compile(r"<(?P<address>https?://[^<>|\s]*)(?:\|(?P<text>[^<\n]*))?>")
_TIMESTAMP = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_MENTION = re.compile(r"<[@!#][^<>]*>")


class SlackPosted:
    """Implements `core.ports.ChannelReader`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._identity = BotIdentity(client)

    async def recent(self, place: Place, limit: int) -> tuple[int, tuple[Posted, ...]]:
        reading = self._client.conversations_history(channel=place.channel, limit=limit)
        messages = await self._read("conversations.history", reading, place)
        return len(messages), tuple(filter(None, messages))

    async def first(self, place: Place) -> Posted | None:
        reading = self._client.conversations_replies(channel=place.channel, ts=place.thread or "", limit=1)
        try:
            return next(iter(await self._read("conversations.replies", reading, place)), None)
        except MessageNotFound:
            return None

    async def look(self, place: Place, since: datetime) -> bool:
        return False  # events bring what is new

    async def _read(self, method: str, reading: Any, place: Place) -> list[Posted | None]:
        """Return a message for each of the answer; None for one that no other bot posted."""
        messages, own = objects((await call(method, reading)).get("messages")), await self._identity.user_id()
        return [posted_of(each, place.channel, own) for each in messages]


def posted_of(message: Mapping[str, Any], channel: str, own: str = "") -> Posted | None:
    """Return the message of another bot as its channel shows it; None for that of a person, or of any Plumbline.

    `message` is that of an event or of a history, `own` our user id. Malformed parts are left out.
    """
    sender = str(message.get("app_id") or message.get("bot_id") or "")
    if not sender or not message.get("bot_id") or (own and message.get("user") == own) or _is_ours(message):
        return None
    profile, edited = _mapping(message.get("bot_profile")), _mapping(message.get("edited"))
    root, ts, revision = map(_timestamp, (message.get("thread_ts"), message.get("ts"), edited.get("ts")))
    if not ts:
        return None
    shown = Shown(_LINK, _plain)
    shown.read(message)
    return Posted(
        place=Place(Platform.SLACK, channel, root if root and root != ts else None),
        message_id=ts,
        sender=sender,
        sender_name=str(profile.get("name") or message.get("username") or ""),
        at=datetime.fromtimestamp(float(revision or ts), UTC),
        lines=tuple(dict.fromkeys(shown.lines)),
        fields=tuple(shown.fields),
        links=tuple((text, address.replace("&amp;", "&")) for text, address in dict.fromkeys(shown.links)),
        colours=tuple(shown.colours),
        revision=revision,
    )


def _is_ours(message: Mapping[str, Any]) -> bool:
    """Return whether a Plumbline posted it, which may be another one: they would answer each other."""
    is_marked = _mapping(message.get("metadata")).get("event_type") == EVENT_TYPE
    return is_marked or f"'action_id': '{ACTION_PREFIX}" in repr(message.get("blocks"))


def _plain(text: str) -> str:
    """Return a text without mentions and entities. Other lines keep their spaces, which may be between two fields."""
    return "\n".join(
        plain_text(line, "") if "<" in line or "&" in line else line for line in _MENTION.sub("", text).split("\n")
    )


def _timestamp(value: Any) -> str:
    return value if isinstance(value, str) and _TIMESTAMP.fullmatch(value) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
