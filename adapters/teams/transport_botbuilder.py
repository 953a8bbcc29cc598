"""Transport with botbuilder-core.

Works around its flaws: it fetches its token on the event loop, retries requests on its own, sleeps through a
Retry-After in a thread, and waits for 100 seconds.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import requests
from azure.core.exceptions import DeserializationError
from botbuilder.core import CardFactory, MessageFactory
from botbuilder.schema import Activity, Entity
from botframework.connector import BotFrameworkConnectorConfiguration
from botframework.connector.aio import ConnectorClient
from msrest.authentication import Authentication
from msrest.exceptions import ClientException, HttpOperationError

from adapters.teams.access_token import AccessToken
from adapters.teams.elements import Card
from adapters.teams.transport import TIMEOUT, StreamPhase, StreamUpdate, failure
from core.model.errors import ChatUnavailable, PlumblineError


class BotbuilderTransport:
    """Implements `Transport`."""

    def __init__(self, token: AccessToken | None) -> None:
        self._token = token

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        client = await self._client(service_url)
        with _failures_translated():
            async with client:
                response = await client.conversations.send_to_conversation(conversation_id, _activity(card))
        return _id_of(response)

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        client = await self._client(service_url)
        with _failures_translated():
            async with client:
                await client.conversations.update_activity(conversation_id, message_id, _activity(card))

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        client = await self._client(service_url)
        with _failures_translated():
            async with client:
                response = await client.conversations.send_to_conversation(conversation_id, _streamed(update))
        return update.stream_id or _id_of(response)

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        client = await self._client(service_url)
        with _failures_translated():
            async with client:
                await client.conversations.delete_activity(conversation_id, message_id)

    async def close(self) -> None:
        """Do nothing: every request closes its own connection."""

    async def _client(self, service_url: str) -> ConnectorClient:
        bearer = _Bearer(await self._token.get() if self._token else "")
        configuration = BotFrameworkConnectorConfiguration(bearer, service_url)
        configuration.connection.timeout = TIMEOUT
        # Our workflows retry steps and honour Retry-After, so the SDK must return its first response.
        configuration.retry_policy.retries = 0
        configuration.retry_policy.policy.status_forcelist = frozenset()
        configuration.retry_policy.policy.respect_retry_after_header = False
        return ConnectorClient(None, custom_configuration=configuration)


class _Bearer(Authentication):
    """A token that was fetched earlier."""

    def __init__(self, token: str) -> None:
        self._token = token

    def signed_session(self, session: requests.Session | None = None) -> requests.Session:
        session = session or requests.Session()
        if self._token:
            session.headers["Authorization"] = f"Bearer {self._token}"
        return session


def _activity(card: Card) -> Activity:
    activity = MessageFactory.attachment(CardFactory.adaptive_card(card.content))
    activity.summary = card.summary
    return activity


class _StreamInfo(Entity):
    """A stream entity. The SDK's own class keeps only its type."""

    _attribute_map = {  # noqa: RUF012 -- as msrest wants it
        name: {"key": name, "type": "int" if name == "streamSequence" else "str"}
        for name in ("type", "streamType", "streamSequence", "streamId")
    }

    def __init__(self, **fields: object) -> None:
        for name in self._attribute_map:
            setattr(self, name, fields.get(name))


def _streamed(update: StreamUpdate) -> Activity:
    activity = Activity(type="message" if update.phase is StreamPhase.FINAL else "typing")
    activity.text, activity.text_format = update.text, "plain"
    if update.card is not None:
        activity.attachments = [CardFactory.adaptive_card(update.card.content)]
    activity.entities = [_StreamInfo(**update.entity)]
    return activity


def _id_of(response: object) -> str:
    message_id = getattr(response, "id", None)
    if not message_id:
        raise PlumblineError("Teams took the message without telling its id.")
    return str(message_id)


@contextmanager
def _failures_translated() -> Generator[None]:
    try:
        yield
    except HttpOperationError as error:
        response = error.response
        raise failure(response.status_code, response.headers.get("Retry-After"), str(error)) from None
    except (ClientException, DeserializationError, requests.RequestException) as error:
        raise ChatUnavailable(f"Teams cannot be reached: {type(error).__name__}.") from None
