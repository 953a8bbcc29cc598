"""Read a message of another bot in Slack: its text, blocks and attachments, with what is only coloured or linked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.blocks import ACTION_PREFIX, plain_text
from adapters.slack.client import EVENT_TYPE, BotIdentity, call
from core.model.conversation import Place, Platform, cut_message
from core.model.errors import MessageNotFound
from core.model.posted import Posted

MAX_DEPTH = 12  # nested elements
MAX_PARTS = 200  # of one message
NO_FALLBACK = "[no preview available]"  # Slack's own text for an attachment of blocks

_LINK = re.compile(r"<(https?://[^<>|\s]*)(?:\|([^<\n]*))?>")
_MARKS = re.compile(r"(?<![\w*_~])[*_~]++(?=\S)|(?<=[^\s*_~])[*_~]++(?!\w)|`+")
_TIMESTAMP = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_MENTION = re.compile(r"<[@!#][^<>]*>")
_OWN = ("pretext", "author_name", "title", "text")
_INNER = ("blocks", "fields", "elements", "attachments")


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

    async def _read(self, method: str, reading: Any, place: Place) -> list[Posted | None]:
        """Return a message for each of the answer; None for one that no other bot posted."""
        messages, own = _list((await call(method, reading)).get("messages")), await self._identity.user_id()
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
    parts = list(_parts(message, MAX_DEPTH))[:MAX_PARTS]
    links = [(_plain(text), address) for kind, text, address in parts if kind == "link"]
    lines = [line for kind, text, _ in parts if kind == "line" for line in _plain(text).splitlines() if line.strip()]
    return Posted(
        place=Place(Platform.SLACK, channel, root if root and root != ts else None),
        message_id=ts,
        sender=sender,
        sender_name=str(profile.get("name") or message.get("username") or ""),
        at=datetime.fromtimestamp(float(revision or ts), UTC),
        lines=tuple(dict.fromkeys(lines)) if len(parts) < MAX_PARTS else tuple(lines),
        fields=tuple((_plain(name), _plain(value)) for kind, name, value in parts if kind == "field"),
        links=tuple(dict.fromkeys(links)),
        colours=tuple(text for kind, text, _ in parts if kind == "colour"),
        revision=revision,
    )


def _is_ours(message: Mapping[str, Any]) -> bool:
    """Return whether a Plumbline posted it, which may be another one: they would answer each other."""
    is_marked = _mapping(message.get("metadata")).get("event_type") == EVENT_TYPE
    return is_marked or f"'action_id': '{ACTION_PREFIX}" in repr(message.get("blocks"))


def _parts(element: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str, str]]:
    """Yield what an element shows, as its kind and one or two texts, in the order in which it is seen."""
    if not depth:
        return
    colour, title, link = (str(element.get(key) or "") for key in ("color", "title", "title_link"))
    if colour:
        yield "colour", colour.lower().removeprefix("#"), ""
    if link:
        yield "link", title, link
    if element.get("type") == "button" and isinstance(address := element.get("url"), str):
        yield "link", _text(element.get("text")), address
    elif isinstance(value := element.get("value"), str) and title:
        yield from _field(title, value)
    elif element.get("type") not in ("button", "image"):
        own = [text for key in _OWN if (text := _text(element.get(key)))]
        inner = [part for key in _INNER for each in _list(element.get(key)) for part in _inside(each, key, depth)]
        fallback = str(element.get("fallback") or "")
        for text in own or ([fallback] if not inner and fallback != NO_FALLBACK else []):
            yield from _linked(text)
        yield from inner
    for action in _list(element.get("actions")):
        yield from _parts({**action, "type": "button"}, depth - 1)


def _inside(element: Mapping[str, Any], key: str, depth: int) -> list[tuple[str, str, str]]:
    text = _text(element) if key == "fields" and "title" not in element else ""
    name, _, value = text.partition("\n")
    if value:
        return [*_field(name, value)]
    return [*_linked(text)] if text else [*_parts(element, depth - 1)]


def _field(name: str, value: str) -> Iterator[tuple[str, str, str]]:
    yield "field", name, value
    yield from (part for part in _linked(value) if part[0] == "link")


def _linked(text: str) -> Iterator[tuple[str, str, str]]:
    yield "line", text, ""
    for match in _LINK.finditer(text):
        yield "link", match[2] or "", match[1].replace("&amp;", "&")


def _text(value: Any) -> str:
    text = value.get("text") if isinstance(value, Mapping) else value
    return cut_message(_text(text) if isinstance(text, Mapping) else text) if isinstance(text, str | Mapping) else ""


def _plain(text: str) -> str:
    """Return a text without markup, mentions and addresses."""
    shown = _LINK.sub(lambda match: match[2] or match[1], _MENTION.sub("", text))
    return _MARKS.sub(
        "", "\n".join(plain_text(line, "") if "<" in line or "&" in line else line for line in shown.split("\n"))
    )


def _timestamp(value: Any) -> str:
    return value if isinstance(value, str) and _TIMESTAMP.fullmatch(value) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
