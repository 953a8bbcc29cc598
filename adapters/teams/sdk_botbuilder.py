"""botbuilder-core.

This module works around its faults: it fetches its token on the event loop, retries requests on its own, sleeps
through a Retry-After in a thread, and has a timeout of 100 seconds.
"""

from __future__ import annotations

from typing import Any

import requests
from azure.core.exceptions import DeserializationError
from botbuilder.core.serializer_helper import deserializer_helper
from botbuilder.schema import Activity, Entity
from botframework.connector import BotFrameworkConnectorConfiguration
from botframework.connector.aio import ConnectorClient
from msrest.authentication import Authentication
from msrest.exceptions import ClientException, HttpOperationError
from msrest.universal_http.requests import ClientRetryPolicy

from adapters.http import retry_after
from adapters.teams.connector import TIMEOUT, Connector, Operation, failure
from core.model.errors import ChatUnavailable

# Each client looks for the other codes in this list, one after the other: 5 ms of every request.
ClientRetryPolicy.safe_codes = frozenset(ClientRetryPolicy.safe_codes)  # pyright: ignore[reportAttributeAccessIssue]


class Botbuilder(Connector):
    """A connector whose messages go through the SDK."""

    async def _sent(
        self, service_url: str, token: str, operation: Operation, *ids: str, activity: dict[str, Any] | None
    ) -> str:
        if activity is not None and "recipient" in activity:  # the SDK cannot let one member alone see a message
            return await super()._sent(service_url, token, operation, *ids, activity=activity)
        try:
            body: list[Any] = []
            if activity is not None:
                typed: Any = deserializer_helper(Activity, activity)
                typed.entities = [_WholeEntity(fields) for fields in activity.get("entities", ())] or None
                body.append(typed)
            async with _client(service_url, token) as client:
                answer = await getattr(client.conversations, operation)(*ids, *body)
                return str(getattr(answer, "id", None) or "")
        except HttpOperationError as error:
            response = error.response
            raise failure(response.status_code, retry_after(response.headers), response.text) from None
        except (ClientException, DeserializationError, requests.RequestException) as error:
            raise ChatUnavailable(f"Teams cannot be reached: {type(error).__name__}.") from None


def _client(service_url: str, token: str) -> ConnectorClient:
    configuration = BotFrameworkConnectorConfiguration(_Bearer(token), service_url)
    configuration.connection.timeout = TIMEOUT
    # Our workflows retry a step and honour Retry-After, so the SDK must return its first answer.
    configuration.retry_policy.retries = 0
    configuration.retry_policy.policy.status_forcelist = frozenset()
    configuration.retry_policy.policy.respect_retry_after_header = False
    return ConnectorClient(None, custom_configuration=configuration)


class _Bearer(Authentication):
    """Authentication with a token that was fetched before."""

    def __init__(self, token: str) -> None:
        self._token = token

    def signed_session(self, session: requests.Session | None = None) -> requests.Session:
        session = session or requests.Session()
        if self._token:
            session.headers["Authorization"] = f"Bearer {self._token}"
        return session


class _WholeEntity(Entity):
    """An entity with all its fields; the SDK's own keeps only the type."""

    def __init__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields, _attribute_map={name: {"key": name, "type": "object"} for name in fields})
