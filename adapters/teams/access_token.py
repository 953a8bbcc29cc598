"""The access token of our requests to Teams.

Both SDKs use a blocking library without a timeout; this is the client-credentials grant (RFC 6749, section 4.4) on the
event loop.
"""

from __future__ import annotations

import asyncio
import time

import aiohttp

from adapters.teams.cloud import Cloud
from core.model.errors import ChatUnavailable, ConfigurationError

SCOPE = "https://api.botframework.com/.default"
MULTI_TENANT = "botframework.com"  # the authority of a multi-tenant bot
TIMEOUT = aiohttp.ClientTimeout(total=10.0)  # seconds
RENEW_BEFORE = 300.0  # seconds before expiry

REFUSED = "Microsoft refuses the bot's credentials ({code}): check TEAMS_APP_ID, TEAMS_APP_PASSWORD, TEAMS_TENANT_ID."


class AccessToken:
    """A token that is fetched on first use and cached until shortly before it expires."""

    def __init__(self, app_id: str, app_password: str, tenant_ids: frozenset[str], cloud: Cloud) -> None:
        """Create the token source. `tenant_ids` are the served tenants; empty for all."""
        tenant = next(iter(tenant_ids)) if len(tenant_ids) == 1 else MULTI_TENANT
        self._url = f"{cloud.login_url}/{tenant}/oauth2/v2.0/token"
        self._form = {
            "grant_type": "client_credentials",
            "client_id": app_id,
            "client_secret": app_password,
            "scope": SCOPE,
        }
        self._token = ""
        self._renew_at = 0.0
        self._fetching = asyncio.Lock()

    async def get(self) -> str:
        """Return the token.

        Raises ChatUnavailable if Microsoft does not answer, ConfigurationError if it refuses the credentials.
        """
        async with self._fetching:
            if time.monotonic() >= self._renew_at:
                await self._fetch()
            return self._token

    async def _fetch(self) -> None:
        try:
            async with (
                aiohttp.ClientSession(timeout=TIMEOUT) as session,
                session.post(self._url, data=self._form) as response,
            ):
                if response.status >= 500 or response.status == 429:
                    raise ChatUnavailable(f"Microsoft issues no token now (HTTP {response.status}).")
                answer = await response.json(content_type=None)
                if response.status >= 400:
                    raise ConfigurationError(REFUSED.format(code=answer.get("error", response.status)))
                self._token = str(answer["access_token"])
                self._renew_at = time.monotonic() + max(float(answer["expires_in"]) - RENEW_BEFORE, 0.0)
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ChatUnavailable(f"Microsoft issues no token now: {type(error).__name__}.") from None
