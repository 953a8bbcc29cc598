"""An issuer of tokens (OpenID Connect Discovery 1.0): its description, its keys, and the check that it signed a token.

The tokens are those of the connector service of Teams, and of the provider with which people sign in.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import Key, KeySet
from joserfc.jwt import JWTClaimsRegistry, Token

from adapters.http import Errors, HttpAnswer, exchange, json_in, line_of
from core.model.errors import Unauthorized, Unavailable
from core.ports import Clock

ALGORITHMS = ("RS256", "PS256", "ES256")  # with a public key alone: neither none, nor one whose key is a shared secret
KNOWN_FOR = timedelta(hours=1)  # after which what an issuer publishes is read again
KEPT_FOR = timedelta(days=2)  # after that, while it cannot be read: it may have withdrawn a key
UNKNOWN_KEY_PAUSE = timedelta(minutes=1)  # otherwise anybody could make us ask the issuer with every request
FAILURE_PAUSE = timedelta(seconds=10)
TIMEOUT = 10.0  # seconds for an answer

ERRORS = Errors(Unavailable, lambda message, _: Unavailable(message), lambda message, _: Unavailable(message))
UNUSABLE = (JoseError, ValueError, TypeError, KeyError)  # raised for what somebody else wrote


class Issuer:
    """The issuer that `metadata_url` describes. What it published stays in use for two days if it does not answer."""

    def __init__(
        self, system: str, issuer: str, metadata_url: str, clock: Clock, session: aiohttp.ClientSession
    ) -> None:
        """Create the issuer, which errors call `system`."""
        self._system = system
        self._issuer = issuer
        self._metadata_url = metadata_url
        self.clock = clock
        self._session = session
        self._reading = asyncio.Lock()
        self._metadata: dict[str, Any] = {}
        self._keys = KeySet([])
        self._stale_at = self._not_before = datetime.min.replace(tzinfo=UTC)

    async def metadata(self, *, is_key_unknown: bool = False) -> dict[str, Any]:
        """Return the description. It is read again, with the keys, if it is old, or for an unknown key.

        Raises Unavailable if it was never read.
        """
        async with self._reading:
            now = self.clock.now()
            if (is_key_unknown or now >= self._stale_at) and now >= self._not_before:
                self._not_before = now + FAILURE_PAUSE
                try:
                    await self._read()
                    self._stale_at, self._not_before = now + KNOWN_FOR, now + UNKNOWN_KEY_PAUSE
                except (Unavailable, *UNUSABLE) as error:
                    if not self._metadata:
                        raise Unavailable(f"{self._system} cannot be used: {line_of(str(error), 300)}.") from None
            if not self._metadata or now >= self._stale_at + KEPT_FOR:
                raise Unavailable(f"{self._system} cannot be used.", FAILURE_PAUSE.total_seconds())
            return self._metadata

    async def keys(self) -> int:
        """Return the number of published keys. Raises Unavailable."""
        await self.metadata()
        return len(self._keys.keys)

    async def verified(self, token: str, audience: str, leeway: int) -> tuple[Token, Key]:
        """Return a token that was issued for this audience, and the key that signed it.

        `leeway` are the seconds between two clocks. Raises Unauthorized for any other token; Unavailable without keys.
        """
        registry = JWTClaimsRegistry(
            int(self.clock.now().timestamp()),
            leeway,
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
        )
        await self.metadata()
        try:
            try:
                verified = jwt.decode(token, self._keys, ALGORITHMS)
            except InvalidKeyIdError:
                await self.metadata(is_key_unknown=True)
                verified = jwt.decode(token, self._keys, ALGORITHMS)
            registry.validate(verified.claims)
            return verified, self._keys.get_by_kid(verified.header.get("kid"))
        except UNUSABLE as error:
            raise Unauthorized(f"The token is not valid: {line_of(str(error), 200)}.") from None

    async def ask(self, method: str, address: str, **options: Any) -> HttpAnswer:
        """Return an answer of the issuer, whatever the status. Raises Unavailable without one."""
        return await exchange(
            self._session, method, address, system=self._system, errors=ERRORS, seconds=TIMEOUT, **options
        )

    async def _read(self) -> None:
        metadata: Any = json_in((await self.ask("GET", self._metadata_url)).body)
        if metadata["issuer"] != self._issuer:
            raise ValueError(f"it calls itself {metadata['issuer']}, not {self._issuer}")
        published: Any = json_in((await self.ask("GET", metadata["jwks_uri"])).body)
        self._keys = KeySet.import_key_set(published)
        self._metadata = metadata
