"""Transport with the Microsoft 365 Agents SDK.

Works around its flaws: it opens a connection for every message, waits without a limit, truncates a conversation id
after 150 characters, and expects every response to be JSON.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

import aiohttp
from microsoft_agents.activity import Activity, Entity, ResourceResponse
from microsoft_agents.hosting.core import CardFactory, MessageFactory
from microsoft_agents.hosting.core.connector.client.connector_client import ConversationsOperations

from adapters.teams.access_token import AccessToken
from adapters.teams.elements import Card
from adapters.teams.transport import TIMEOUT, StreamPhase, StreamUpdate, failure
from core.model.errors import ChatUnavailable, PlumblineError

MAX_CONVERSATION_ID = 1000  # characters

# It logs errors that it also raises; what operators need to know is raised.
logging.getLogger("microsoft_agents").setLevel(logging.CRITICAL)


class AgentsTransport:
    """Implements `Transport`."""

    def __init__(self, token: AccessToken | None) -> None:
        self._token = token
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        conversations = await self._conversations(service_url)
        response = await _answer(conversations.send_to_conversation(conversation_id, _activity(card)))
        return _id_of(response)

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        conversations = await self._conversations(service_url)
        await _answer(conversations.update_activity(conversation_id, message_id, _activity(card)))

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        conversations = await self._conversations(service_url)
        response = await _answer(conversations.send_to_conversation(conversation_id, _streamed(update)))
        return update.stream_id or _id_of(response)

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        conversations = await self._conversations(service_url)
        await _answer(conversations.delete_activity(conversation_id, message_id))

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    async def _conversations(self, service_url: str) -> ConversationsOperations:
        base = service_url if service_url.endswith("/") else f"{service_url}/"
        session = self._sessions.get(base)
        if session is None:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT)
            session = self._sessions[base] = aiohttp.ClientSession(base_url=base, timeout=timeout)
        if self._token is not None:
            session.headers["Authorization"] = f"Bearer {await self._token.get()}"
        return ConversationsOperations(session, max_conversation_id_length=MAX_CONVERSATION_ID)


def _activity(card: Card) -> Activity:
    activity = MessageFactory.attachment(CardFactory.adaptive_card(card.content))
    activity.summary = card.summary
    return activity


def _streamed(update: StreamUpdate) -> Activity:
    activity = Activity(type="message" if update.phase is StreamPhase.FINAL else "typing")
    activity.text, activity.text_format = update.text, "plain"
    if update.card is not None:
        activity.attachments = [CardFactory.adaptive_card(update.card.content)]
    activity.entities = [Entity(**update.entity)]
    return activity


def _id_of(response: ResourceResponse) -> str:
    if not response.id:
        raise PlumblineError("Teams took the message without telling its id.")
    return response.id


async def _answer(request: Awaitable[ResourceResponse | None]) -> ResourceResponse:
    try:
        return await request or ResourceResponse()
    except aiohttp.ClientResponseError as error:
        if error.status < 300:  # accepted, with a response that is not JSON
            return ResourceResponse()
        headers = error.headers or {}
        raise failure(error.status, headers.get("Retry-After"), error.message) from None
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ChatUnavailable(f"Teams cannot be reached: {type(error).__name__}.") from None
