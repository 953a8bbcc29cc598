"""An OpenID provider that signs everybody in at once, checks what a provider checks, and lies when it is told to."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry

from core.ports import Clock

CLIENT, SECRET = "plumbline-page", "the-secret-of-the-page"
EVERY_ALGORITHM = JWSRegistry(algorithms=["none", "HS256", "RS256", "RS512"], strict_check_header=False)
Claims = dict[str, Any]


@cache
def key_named(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


@dataclass
class OpenIdProvider:
    """`person` are the claims of whoever signs in next. The other fields are its lies."""

    clock: Clock
    person: Claims = field(default_factory=lambda: {"sub": "asha", "name": "Asha Brandt", "groups": ["sre"]})
    metadata: Claims = field(default_factory=dict[str, Any])
    claims: Claims = field(default_factory=dict[str, Any])  # of the ID token; None leaves one out
    header: Claims = field(default_factory=dict[str, Any])
    key: RSAKey | OctKey = field(default_factory=lambda: key_named("first"))
    published: list[RSAKey] = field(default_factory=lambda: [key_named("first")])
    tokens: Callable[[dict[str, Any]], Any] = lambda reply: reply
    client_key: bytes | None = None  # the public key of a client with a certificate, in PEM form
    status: int = 200
    reply: Mapping[str, str | None] = field(default_factory=dict[str, str | None])  # to the browser
    issuer: str = ""
    asked: list[str] = field(default_factory=list[str])
    codes: dict[str, tuple[dict[str, str], Claims]] = field(default_factory=dict[str, tuple[dict[str, str], Claims]])

    async def describe(self, request: web.Request) -> web.Response:
        ways = ("authorization_endpoint", "token_endpoint", "jwks_uri", "end_session_endpoint")
        paths = {way: f"{self.issuer}/{way}" for way in ways}
        described = paths | {"issuer": self.issuer, "authorization_response_iss_parameter_supported": True}
        return web.json_response(described | self.metadata)

    async def keys(self, request: web.Request) -> web.Response:
        self.asked.append("keys")
        return web.json_response({"keys": [each.as_dict(private=False) for each in self.published]})

    async def authorize(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        assert (query["response_type"], query["client_id"], query["code_challenge_method"]) == ("code", CLIENT, "S256")
        code = secrets.token_urlsafe(8)
        self.codes[code] = query, dict(self.person)
        reply = {"code": code, "state": query["state"], "iss": self.issuer} | dict(self.reply)
        pairs = urlencode({name: value for name, value in reply.items() if value is not None})
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{pairs}"})

    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        credentials = self._credentials(request, form)
        query, person = self.codes.pop(form["code"], ({}, {}))
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        )
        asked = (f"{CLIENT}:{SECRET}", form["redirect_uri"], challenge)
        if asked != (credentials, query.get("redirect_uri"), query.get("code_challenge")) or self.status != 200:
            return web.json_response({"error": "invalid_grant"}, status=max(self.status, 400))
        access_token = secrets.token_urlsafe(8)
        reply = {"access_token": access_token, "token_type": "Bearer", "id_token": self.signed(person, query["nonce"])}
        return web.json_response(self.tokens(reply))

    def _credentials(self, request: web.Request, form: dict[str, str]) -> str:
        """Return what the client proves to be: with a secret, or with an assertion that its certificate signs."""
        if self.client_key is None:
            return base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        assert "Authorization" not in request.headers
        try:
            assertion = jwt.decode(form["client_assertion"], RSAKey.import_key(self.client_key), ["PS256"]).claims
        except JoseError:
            return "of somebody else"
        audience = (assertion["aud"], assertion["iss"], assertion["sub"], form["client_id"])
        assert audience == (f"{self.issuer}/token_endpoint", CLIENT, CLIENT, CLIENT)
        assert assertion["jti"] not in self.asked
        self.asked.append(assertion["jti"])
        return f"{CLIENT}:{SECRET}"

    def signed(self, person: Claims, nonce: str = "", **more: Any) -> str:
        now = int(self.clock.now().timestamp())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce}
        claims |= person | more | self.claims
        header = {"alg": "RS256", "kid": self.key.kid} | self.header
        stated = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(header, stated, self.key, registry=EVERY_ALGORITHM)


@asynccontextmanager
async def openid_provider(clock: Clock) -> AsyncIterator[OpenIdProvider]:
    provider = OpenIdProvider(clock)
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", provider.describe)
    app.router.add_get("/jwks_uri", provider.keys)
    app.router.add_get("/authorization_endpoint", provider.authorize)
    app.router.add_post("/token_endpoint", provider.token)
    async with TestServer(app, host="127.0.0.1") as server:
        provider.issuer = str(server.make_url("/")).rstrip("/")
        yield provider
