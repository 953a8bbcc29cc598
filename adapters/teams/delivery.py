"""The activities that messages are sent as, to everybody in a conversation, or to one member alone for 24 hours.

https://learn.microsoft.com/microsoftteams/platform/agents-in-teams/targeted-messages
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from adapters.teams.connector import Connector, ConversationReference
from adapters.teams.elements import ADAPTIVE_CARD, Card
from core.model.errors import MessageNotFound, Undeliverable
from core.model.messages import Message, Notice


def card_message(card: Card) -> dict[str, Any]:
    """Return an activity with the card, its summary and its entities."""
    activity: dict[str, Any] = {
        "type": "message",
        "attachments": [{"contentType": ADAPTIVE_CARD, "content": card.content}],
        "summary": card.summary,
    }
    if card.entities:
        activity["entities"] = list(card.entities)
    if card.channel_data is not None:
        activity["channelData"] = card.channel_data
    return activity


async def send(
    message: Message, connector: Connector, home: ConversationReference, conversation: str, activity: dict[str, Any]
) -> str:
    """Send an activity that shows the message, and return its id. Raises the errors of `Connector.call`.

    Everybody sees it where Teams does not let one member alone see it, because nobody would otherwise.
    """
    if isinstance(message, Notice) and message.only_for is not None and not home.personal:
        channel, person = (quote(each, safe="") for each in (conversation.partition(";")[0], message.only_for.id))
        with suppress(Undeliverable, MessageNotFound, ValueError, KeyError, TypeError):
            # A person is known by the id of the directory. The recipient needs the id that the bot knows the member by.
            member = await connector.get(home.service_url, f"conversations/{channel}/members/{person}")
            alone = activity | {"recipient": {"id": json.loads(member.body)["id"]}}
            return await connector.call(home.service_url, "send_to_conversation", conversation, activity=alone)
    return await connector.call(home.service_url, "send_to_conversation", conversation, activity=activity)
