"""The intent of a message, kept in its card, by which a post is found again after a crash.

Teams has no metadata of a message that Microsoft Graph would show, but Graph returns a card with the ids of its elements
(https://learn.microsoft.com/graph/api/resources/chatmessageattachment), which nobody sees.
"""

from __future__ import annotations

import hashlib
import re

from adapters.microsoft_graph.messages import ChatMessage
from adapters.teams.elements import Card, Element

CARD = "application/vnd.microsoft.card.adaptive"
LENGTH = 32  # hexadecimal digits that tell one intent from another


def marked(card: Card, intent: str) -> Card:
    """The card with its intent in the id of an element, none that has an id already."""
    body: list[Element] = list(card.content["body"])
    place = next(index for index, element in enumerate(body) if "id" not in element)
    body[place] = body[place] | {"id": _mark(intent)}
    return Card(card.content | {"body": body}, card.summary)


def is_for(message: ChatMessage, intent: str, app_id: str) -> bool:
    """Return whether this app posted the message for this intent.

    A card with the same id from anybody else is not ours; nor is one of ours in whose text somebody wrote the id: within
    a text of JSON, no quotation mark stands without a backslash.
    """
    cards = (each.content for each in message.attachments or () if each.contentType == CARD)
    element = re.compile(rf'"id"\s*:\s*"{_mark(intent)}"')
    return message.application_id == app_id and any(element.search(str(card)) for card in cards)


def _mark(intent: str) -> str:
    """Letters and digits alone, and always as many: an intent may be long, and may hold what somebody wrote."""
    return f"plumbline-{hashlib.sha256(intent.encode()).hexdigest()[:LENGTH]}"
