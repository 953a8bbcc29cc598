"""Requests to Microsoft Graph: access tokens of an application, and collections, which come in pages.

https://learn.microsoft.com/graph/paging
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from adapters.http import SOURCE, Http, TryAgain, exchange, followed, source_server
from adapters.section import EnvironmentName, Host
from adapters.sources.section import SourceSection
from core.model.errors import SourceUnavailable

GRAPH_URL = "https://graph.microsoft.com/v1.0"
LOGIN_URL = "https://login.microsoftonline.com"
RESOURCE = "https://graph.microsoft.com"
TIMEOUT = 10.0  # seconds


class CredentialsRefused(SourceUnavailable):
    """Microsoft issues no token for these credentials until somebody corrects them."""


class GraphCredentials:
    """An application's own credentials in a tenant. A token is cached until Graph refuses it, after about an hour."""

    def __init__(
        self,
        tenant_id: str,
        client_id: str,
        client_secret: str,
        session: aiohttp.ClientSession,
        login_url: str = LOGIN_URL,
    ) -> None:
        self._url, self._form = client_credentials(login_url, tenant_id, client_id, client_secret, RESOURCE)
        self._session = session
        self._token = ""
        self._fetching = asyncio.Lock()

    async def header(self) -> str:
        async with self._fetching:
            if not self._token:
                self._token = (await issue_token(self._session, self._url, self._form)).value
            return f"Bearer {self._token}"

    def refused(self, header: str) -> bool:
        """Discard the refused token. Returns True, because a new one may be accepted."""
        if header == f"Bearer {self._token}":
            self._token = ""
        return True


def client_credentials(
    login_url: str, tenant_id: str, client_id: str, client_secret: str, resource: str
) -> tuple[str, dict[str, str]]:
    """Return the URL and the form of a request for a token for `resource` (RFC 6749, section 4.4)."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id,
        "client_secret": client_secret,
        "scope": f"{resource}/.default",
    }
    return f"{login_url.rstrip('/')}/{tenant_id}/oauth2/v2.0/token", form


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """An access token, and its lifetime in seconds."""

    value: str
    lifetime: float


async def issue_token(session: aiohttp.ClientSession, url: str, form: Mapping[str, str]) -> IssuedToken:
    """Request a token. Raises TryAgain for a temporary failure, and CredentialsRefused for wrong credentials."""
    answer = await exchange(session, "POST", url, system="Microsoft's login", errors=SOURCE, seconds=TIMEOUT, data=form)
    if answer.may_pass:
        raise TryAgain(f"Microsoft did not issue a token (HTTP status {answer.status}).", answer.retry_after)
    try:
        reply = json.loads(answer.body)
        if answer.status == 200:
            return IssuedToken(str(reply["access_token"]), float(reply["expires_in"]))
        code = str(reply.get("error") or f"HTTP status {answer.status}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TryAgain(f"Microsoft did not issue a token: {type(error).__name__}.") from None
    raise CredentialsRefused(
        f"Microsoft did not issue a token ({code}): check the tenant, the client id and the client secret."
    )


class GraphSection(SourceSection):
    """A source that is read through Microsoft Graph, by an app registered in a tenant."""

    tenant_id: str
    client_id: str
    client_secret_env: EnvironmentName

    def graph(self, host: Host) -> Http:
        secret = host.settings.secret(self.client_secret_env, self.name)
        credentials = GraphCredentials(self.tenant_id, self.client_id, secret, host.session)
        return source_server("Microsoft Graph", GRAPH_URL, host.session, credentials)


async def graph_pages(
    server: Http, address: str, parameters: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield each page of a collection. Raises SourceUnavailable if the links form a loop."""
    answer = await server.get(address, parameters)
    before = set[str]()
    while True:
        yield answer | {"value": server.objects(answer, "value")}
        if not (following := answer.get("@odata.nextLink")):
            return
        answer = await server.get(followed(str(following), before, server.system))


async def graph_values(server: Http, address: str, parameters: Mapping[str, str] | None = None) -> list[Any]:
    """Return all values of a collection."""
    return [each async for page in graph_pages(server, address, parameters) for each in page["value"]]
