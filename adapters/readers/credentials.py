"""Headers, tokens and signatures that a definition describes, from the secrets that a tool names.

AWS Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
botocore would bring 17 MB and hold python-dateutil below version 3 for these lines.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any
from urllib.parse import quote

import aiohttp
from pydantic import BaseModel, TypeAdapter, ValidationError
from yarl import URL

from adapters.http import TOOL, Credentials, Http, Signer, Token, basic, exchange, reason_in
from adapters.readers.definition import Definition
from adapters.readers.template import filled
from core.model.errors import ToolRefused, ToolUnavailable

EARLY = 60.0  # seconds before a token's end in which it is renewed
LIFETIME = 300.0  # seconds of a token that does not say how long it lives


class _Issued(BaseModel):
    access_token: str
    expires_in: float = LIFETIME


_ISSUED = TypeAdapter(_Issued)


@dataclass(slots=True)
class ClientToken:
    """Tokens by client credentials (RFC 6749, section 4.4), each kept until it ends or is refused."""

    system: str
    session: aiohttp.ClientSession
    url: str
    form: Mapping[str, str]
    timeout: float = 6.0  # seconds
    _token: str = ""
    _until: float = 0.0
    _fetching: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def header(self) -> str:
        async with self._fetching:
            if not self._token or time.monotonic() >= self._until:
                issued = await self._issued()
                self._token, self._until = issued.access_token, time.monotonic() + max(0.0, issued.expires_in - EARLY)
            return f"Bearer {self._token}"

    def refused(self, header: str) -> bool:
        if header == f"Bearer {self._token}":
            self._token = ""
        return True

    async def _issued(self) -> _Issued:
        login = f"The login of {self.system}"
        answer = await exchange(
            self.session,
            "POST",
            self.url,
            system=login,
            errors=TOOL,
            seconds=self.timeout,
            max_body=65_536,
            data=self.form,
        )
        status = f"HTTP status {answer.status}"
        if answer.may_pass:
            raise ToolUnavailable(f"{login} answered with {status}.", answer.retry_after)
        if answer.status != 200:
            reason = reason_in(answer.body, secrets=[self.form["client_secret"]])
            raise ToolRefused(f"{login} issued no token ({status}{f': {reason}' if reason else ''}): check the client.")
        try:
            return _ISSUED.validate_json(answer.body)
        except ValidationError as error:
            raise ToolUnavailable(f"{login} answered in an unexpected format.") from error


def opened(
    definition: Definition,
    system: str,
    url: str,
    session: aiohttp.ClientSession,
    settings: Mapping[str, str],
    secrets: Mapping[str, str],
) -> Http:
    """Return the client of a system, whose errors name it `system`. Empty secrets are those that are not given."""
    ways, values = definition.authentication, {**settings, **secrets}

    def value_of(template: Any) -> Any:
        return filled(template, values)

    credentials: Credentials = Token()
    signer: Signer | None = None
    if ways.bearer and (token := value_of(ways.bearer)):
        credentials = Token(f"Bearer {token}")
    elif ways.basic is not None and (password := value_of(ways.basic.password)):
        credentials = basic(value_of(ways.basic.user) or "", password)
    elif ways.oauth is not None:
        form = {"grant_type": "client_credentials", "client_id": ways.oauth.client, "client_secret": ways.oauth.secret}
        form |= {"scope": ways.oauth.scope} if ways.oauth.scope else {}
        credentials = ClientToken(system, session, str(value_of(ways.oauth.url)), value_of(form))
    elif ways.aws is not None:
        given = value_of(ways.aws.model_dump())
        signer = AwsSigner(given["service"], given["region"], given["key"], given["secret"], given.get("token") or "")
    headers = {name: value for name, value in value_of({**definition.headers, **ways.headers}).items() if value}
    hidden = frozenset(filter(None, secrets.values()))
    return Http(system, url, session, credentials, headers, signer=signer, secrets=hidden)


ALGORITHM = "AWS4-HMAC-SHA256"
PLAIN = "-_.~"  # characters that are not escaped (RFC 3986, section 2.3)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class AwsSigner:
    """Signs requests to a service in a region with an access key; `token` is that of temporary credentials."""

    service: str
    region: str
    key: str
    secret: str
    token: str = ""
    now: Callable[[], datetime] = _now

    def signed(self, method: str, url: URL, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        at = f"{self.now():%Y%m%dT%H%M%SZ}"
        more = {"X-Amz-Date": at} | ({"X-Amz-Security-Token": self.token} if self.token else {})
        every = {**headers, **more}
        host = f"{url.host}" if url.is_default_port() else f"{url.host}:{url.port}"
        of_signature = {name.lower(): " ".join(value.split()) for name, value in {**every, "Host": host}.items()}
        names = ";".join(sorted(of_signature))
        query = sorted((quote(name, safe=PLAIN), quote(value, safe=PLAIN)) for name, value in url.query.items())
        request = [
            method,
            quote(url.raw_path, safe=f"/{PLAIN}") or "/",
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{of_signature[name]}" for name in sorted(of_signature)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
        scope = f"{at[:8]}/{self.region}/{self.service}/aws4_request"
        text = "\n".join([ALGORITHM, at, scope, hashlib.sha256("\n".join(request).encode()).hexdigest()])
        signature = reduce(
            lambda key, part: hmac.digest(key, part.encode(), "sha256"),
            [*scope.split("/"), text],
            f"AWS4{self.secret}".encode(),
        ).hex()
        claim = f"{ALGORITHM} Credential={self.key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return every | {"Authorization": claim}
