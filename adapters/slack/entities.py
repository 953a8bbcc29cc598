"""Conversion of Slack's message markup to plain text: https://docs.slack.dev/messaging/formatting-message-text"""

from __future__ import annotations

import re

_ENTITY = re.compile(r"<([^<>]*)>")
_SPECIAL = re.compile(r"!(?:subteam|date)\^\S*")


def plain_text(text: str, bot_user_id: str) -> str:
    """Return the text that a person reads in the message, without mentions of the bot."""
    without_bot = re.sub(rf"<@{re.escape(bot_user_id)}(\|[^<>]*)?>", " ", text)
    readable = _ENTITY.sub(lambda match: _readable(match[1]), without_bot)
    # &amp; last, because it may precede what only looks like another escape.
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        readable = readable.replace(entity, character)
    return "\n".join(" ".join(line.split()) for line in readable.splitlines()).strip()


def mentions(text: str, user_id: str) -> bool:
    return re.search(rf"<@{re.escape(user_id)}(\|[^<>]*)?>", text) is not None


def _readable(entity: str) -> str:
    """Return the readable form of an entity (without angle brackets): a person, channel, group, broadcast, date or
    link.
    """
    target, _, label = entity.partition("|")
    if target.startswith("@"):
        return f"@{label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label if _SPECIAL.fullmatch(target) else f"@{target[1:]}"
    address = target.removeprefix("mailto:")
    return address if not label or address.endswith(label) else f"{label} ({address})"
