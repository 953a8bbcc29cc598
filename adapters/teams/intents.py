"""The intent of a message in its card, by which a post is found after a crash.

Microsoft Graph shows no message metadata of Teams, but it returns cards with the invisible ids of their elements
(https://learn.microsoft.com/graph/api/resources/chatmessageattachment).
"""

from __future__ import annotations

import hashlib
import re

from adapters.microsoft_graph.messages import ChatMessage
from adapters.teams.elements import Card, Element

CARD = "application/vnd.microsoft.card.adaptive"
LENGTH = 32  # hexadecimal digits of an intent's digest


def marked(card: Card, intent: str) -> Card:
    """Return the card with its intent as the id of an element without an id."""
    body: list[Element] = list(card.content["body"])
    place = next(index for index, element in enumerate(body) if "id" not in element)
    body[place] = body[place] | {"id": _mark(intent)}
    return Card(card.content | {"body": body}, card.summary)


def is_for(message: ChatMessage, intent: str, app_id: str) -> bool:
    """Return whether this app posted the message for this intent.

    A card with the same id from another sender is not ours. Text with the id in one of our cards does not match: in
    JSON text, every quotation mark is preceded by a backslash.
    """
    cards = (each.content for each in message.attachments or () if each.contentType == CARD)
    element = re.compile(rf'"id"\s*:\s*"{_mark(intent)}"')
    return message.application_id == app_id and any(element.search(str(card)) for card in cards)


def _mark(intent: str) -> str:
    """Return a digest of fixed length, because an intent may be long and contain untrusted text."""
    return f"plumbline-{hashlib.sha256(intent.encode()).hexdigest()[:LENGTH]}"
