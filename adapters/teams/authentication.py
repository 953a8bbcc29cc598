"""Authentication of requests from Teams, the same for both SDKs.

The SDKs are not used for it: one answers 500 to an invalid token and fetches signing keys with a blocking call, the
other accepts a token for another service URL. The rules are those of “Authentication with the Bot Connector API”, steps
3 to 4: signature, issuer, audience, lifetime, service URL, and a key that is endorsed for the channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp

from adapters.openid import Issuer
from adapters.teams.connector import Cloud
from core.model.errors import Unauthorized
from core.ports import Clock

CLOCK_SKEW = 300  # seconds


def issuer_of(cloud: Cloud, clock: Clock, session: aiohttp.ClientSession) -> Issuer:
    """Return the issuer of the tokens that come with activities, whose keys are read when they are first needed."""
    return Issuer("The login service of Teams", cloud.issuer, cloud.metadata_url, clock, session)


@dataclass(frozen=True, slots=True)
class Credential:
    """The claims of a valid token."""

    service_url: str
    channels: frozenset[str]

    def vouch(self, service_url: str, channel: str) -> None:
        """Raise Unauthorized unless the token is valid for this service URL and channel."""
        if self.service_url.rstrip("/").lower() != service_url.rstrip("/").lower():
            raise Unauthorized("The token was issued for a different service URL than that of the activity.")
        if channel not in self.channels:
            raise Unauthorized("The token was signed with a key that is not valid for this channel.")


class Authenticator:
    """Checks the tokens of Teams' requests."""

    def __init__(self, app_id: str, cloud: Cloud, clock: Clock, session: aiohttp.ClientSession) -> None:
        self._app_id = app_id
        self._issuer = issuer_of(cloud, clock, session)

    async def check(self, authorization: str | None) -> Credential:
        """Return the claims of the token in an Authorization header.

        Raises Unauthorized for anything but a valid token, Unavailable if the signing keys were never read.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("The request has no bearer token. Only Teams may use this address.")
        verified, key = await self._issuer.verified(token, self._app_id, CLOCK_SKEW)
        channels: object = key.as_dict(private=False).get("endorsements")
        endorsed = frozenset(map(str, channels)) if isinstance(channels, list) else frozenset[str]()
        return Credential(str(verified.claims.get("serviceurl", "")), endorsed)
