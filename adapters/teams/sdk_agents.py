"""The Microsoft 365 Agents SDK.

This module works around its faults: it opens a connection for every message, has no timeout, truncates conversation
ids to 150 characters, and requires a JSON answer.
"""

from __future__ import annotations

import logging
from typing import Any

import aiohttp
from microsoft_agents.activity import Activity
from microsoft_agents.hosting.core.connector.client.connector_client import ConversationsOperations
from pydantic import model_serializer

from adapters.http import retry_after
from adapters.teams.connector import TIMEOUT, Operation, failure
from core.model.errors import ChatUnavailable

MAX_BODY = 2_000  # bytes read of a refusal
MAX_CONVERSATION_ID = 1000  # characters

# It logs every error that it also raises.
logging.getLogger("microsoft_agents").setLevel(logging.CRITICAL)


class _WholeActivity(Activity):
    """An activity with unchanged fields; the SDK's own renames those of entities that begin with “@”."""

    fields: dict[str, Any]

    @model_serializer(mode="wrap")
    def _serialize_model(self, handler: object, info: object) -> dict[str, Any]:
        return self.fields


async def _raise(response: aiohttp.ClientResponse) -> None:
    """Raise the error for a refusal. The SDK's own error has no body, which says why."""
    if response.status >= 400:
        body = (await response.content.read(MAX_BODY)).decode(errors="replace")
        raise failure(response.status, retry_after(response.headers), body)


class Agents:
    """Implements `Sdk`."""

    def __init__(self) -> None:
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def call(
        self, service_url: str, token: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> Any:
        session = self._session(service_url)
        if token:
            session.headers["Authorization"] = f"Bearer {token}"
        conversations = ConversationsOperations(session, max_conversation_id_length=MAX_CONVERSATION_ID)
        try:
            body = [_WholeActivity.model_construct(type=activity["type"], fields=activity)] if activity else []
            return await getattr(conversations, operation)(*ids, *body)
        except aiohttp.ClientResponseError as error:
            if error.status < 300:  # taken, and answered with something other than JSON
                return None
            raise failure(error.status, retry_after(error.headers or {}), error.message) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ChatUnavailable(f"Teams cannot be reached: {type(error).__name__}.") from None

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()

    def _session(self, service_url: str) -> aiohttp.ClientSession:
        base = service_url if service_url.endswith("/") else f"{service_url}/"
        if base not in self._sessions:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT)
            self._sessions[base] = aiohttp.ClientSession(base_url=base, timeout=timeout, raise_for_status=_raise)
        return self._sessions[base]
