"""Authentication of requests from Teams, the same for both SDKs.

The SDKs are not used for it: one answers 500 to an invalid token and fetches signing keys with a blocking call, the
other accepts a token for another service URL. The rules are those of “Authentication with the Bot Connector API”, steps
3 to 4: signature, issuer, audience, lifetime, service URL, and a key that is endorsed for the channel.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
import jwt

from adapters.http import Http
from adapters.teams.references import Cloud
from core.model.errors import ChatUnavailable, Unauthorized, Unavailable
from core.ports import Clock

CLOCK_SKEW = timedelta(minutes=5)
KEY_LIFETIME = timedelta(hours=24)
UNKNOWN_KEY_PAUSE = timedelta(minutes=5)  # otherwise anybody could trigger a fetch with every request
FAILURE_PAUSE = timedelta(seconds=10)
FETCH_TIMEOUT = 5.0  # seconds

KEYS_UNAVAILABLE = "The signing keys of Teams cannot be fetched from {url}, so this request cannot be checked."


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key, and the channels (`msteams`, `webchat`, …) whose requests it may sign."""

    public: jwt.PyJWK
    endorsements: frozenset[str]


class SigningKeys:
    """The keys published by Microsoft, fetched without blocking and cached for a day."""

    def __init__(self, metadata_url: str, clock: Clock, session: aiohttp.ClientSession) -> None:
        self._metadata_url = metadata_url
        self._clock = clock
        self._session = session
        self._fetching = asyncio.Lock()
        self._keys: dict[str, SigningKey] = {}
        self._stale_at = datetime.min.replace(tzinfo=UTC)
        self._not_before = datetime.min.replace(tzinfo=UTC)

    async def count(self) -> int:
        """Return the number of published keys. Raises ChatUnavailable if they cannot be fetched."""
        await self.find("")
        return len(self._keys)

    async def find(self, key_id: str) -> SigningKey | None:
        """Return the key with this id; None if it is not published. Raises ChatUnavailable without any keys."""
        async with self._fetching:
            now = self._clock.now()
            if (key_id not in self._keys or now >= self._stale_at) and now >= self._not_before:
                await self._refresh(now)
        if not self._keys:
            raise ChatUnavailable(KEYS_UNAVAILABLE.format(url=self._metadata_url))
        return self._keys.get(key_id)

    async def _refresh(self, now: datetime) -> None:
        """Fetch the keys. Cached keys stay in use if Microsoft is unreachable."""
        self._not_before = now + FAILURE_PAUSE
        try:
            published = await self._get((await self._get(self._metadata_url))["jwks_uri"])
            self._keys = {
                key["kid"]: SigningKey(jwt.PyJWK(key, "RS256"), frozenset(key.get("endorsements", ())))
                for key in published["keys"]
                if key.get("kty") == "RSA"
            }
        except (Unavailable, ValueError, KeyError, TypeError, jwt.PyJWTError):
            return
        self._stale_at = now + KEY_LIFETIME
        self._not_before = now + UNKNOWN_KEY_PAUSE

    async def _get(self, url: str) -> dict:
        return await Http("The login service", url, self._session, timeout=FETCH_TIMEOUT).get(url)


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
        self._cloud = cloud
        self._keys = SigningKeys(cloud.metadata_url, clock, session)

    async def check(self, authorization: str | None) -> Credential:
        """Return the claims of the token in an Authorization header.

        Raises Unauthorized for anything but a valid token, ChatUnavailable if the signing keys cannot be fetched.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("The request has no bearer token. Only Teams may use this address.")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._keys.find(key_id) if isinstance(key_id, str) else None
            if key is None:
                raise Unauthorized("The token is signed with a key that Microsoft does not publish.")
            claims = jwt.decode(
                token,
                key.public,
                algorithms=["RS256"],
                audience=self._app_id,
                issuer=self._cloud.issuer,
                leeway=CLOCK_SKEW,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise Unauthorized(f"The token is not valid: {error}.") from None
        return Credential(str(claims.get("serviceurl", "")), key.endorsements)
