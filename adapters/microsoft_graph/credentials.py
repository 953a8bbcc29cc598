"""Access tokens for Microsoft Graph: the client-credentials grant (RFC 6749, section 4.4)."""

from __future__ import annotations

import asyncio

import aiohttp

from adapters.rest import RETRIED, TryAgain, asked_pause
from core.model.errors import SourceUnavailable

GRAPH_URL = "https://graph.microsoft.com/v1.0"
LOGIN_URL = "https://login.microsoftonline.com"
TIMEOUT = aiohttp.ClientTimeout(total=15.0)  # seconds


class GraphCredentials:
    """An application's own credentials in a tenant. A token is cached until Graph refuses it, after about an hour."""

    def __init__(
        self,
        tenant_id: str,
        client_id: str,
        client_secret: str,
        session: aiohttp.ClientSession,
        login_url: str = LOGIN_URL,
        resource: str = "https://graph.microsoft.com",
    ) -> None:
        self._url = f"{login_url.rstrip('/')}/{tenant_id}/oauth2/v2.0/token"
        self._form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
            "scope": f"{resource}/.default",
        }
        self._session = session
        self._token = ""
        self._fetching = asyncio.Lock()

    async def header(self) -> str:
        async with self._fetching:
            if not self._token:
                self._token = await self._issued()
            return f"Bearer {self._token}"

    def refused(self, header: str) -> bool:
        """Discard the refused token. Returns True, because a new one may be accepted."""
        if header == f"Bearer {self._token}":
            self._token = ""
        return True

    async def _issued(self) -> str:
        try:
            async with self._session.post(self._url, data=self._form, timeout=TIMEOUT) as response:
                if response.status in RETRIED:
                    problem = f"Microsoft issues no token for Graph now (HTTP status {response.status})."
                    raise TryAgain(problem, asked_pause(response.headers))
                answer = await response.json(content_type=None)
                if response.status == 200:
                    return str(answer["access_token"])
                code = str(answer.get("error") or f"HTTP status {response.status}")
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TryAgain(f"Microsoft issues no token for Graph now: {type(error).__name__}.") from None
        raise SourceUnavailable(
            f"Microsoft issues no token for Graph ({code}): check the tenant, the client id and the client secret."
        )
