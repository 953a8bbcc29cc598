"""The chats that take no messages, such as one whose token was revoked, as operators read of them."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.conversation import Platform
from core.model.text import counted
from core.ports import DeadLetter


def closed_chats(waiting: Sequence[DeadLetter]) -> list[str]:
    """Return a sentence for each chat that takes no messages: since when, why, and how many wait, the longest first."""
    chats: dict[Platform, list[DeadLetter]] = {}
    for letter in waiting:
        chats.setdefault(letter.place.platform, []).append(letter)
    return [
        f"{platform.capitalize()} has taken no message in {counted(len({each.place.channel for each in letters}), 'channel')} "
        f"since {letters[0].waiting_since:%Y-%m-%d %H:%M} UTC. {letters[0].reason} Waiting, and posted by itself "
        f"once it does: {counted(len(letters), 'message')}."
        for platform, letters in chats.items()
    ]
