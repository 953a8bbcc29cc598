"""An application signs in to Microsoft: an authority that checks what it is given, and one of Azure's machines."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from jwt.utils import base64url_encode

from adapters.http import TryAgain
from adapters.microsoft import (
    AppToken,
    Certificate,
    ClientLogin,
    ClientSecret,
    CredentialsRefused,
    FederatedToken,
    Login,
    ManagedIdentity,
    Proof,
)
from tests.fakes.certificates import certificate
from tests.fakes.server import FakeServer
from tests.fakes.teams_connector import APP_ID, TENANT, rsa_key

RESOURCE = "https://api.botframework.com"
EXCHANGE = "api://AzureADTokenExchange"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
EXPIRED = {
    "error": "invalid_client",
    "error_description": "AADSTS7000222: The provided client secret keys for app are expired. See the portal.\r\nTrace ID: 1",
}


class Authority(FakeServer):
    """Issues a token for a secret, for an assertion that it can check, and to a machine that asks it from within.

    `certificate` is the one registered for the application, `trusted` the key of the cluster that it trusts.
    """

    def __init__(self) -> None:
        self.certificate: x509.Certificate | None = None
        self.trusted = rsa_key("cluster")
        self.issued = 0
        self.assertions = set[str]()
        self.refusal: dict[str, str] | None = None
        self.identity_key = ""
        app = web.Application()
        app.router.add_post("/{tenant}/oauth2/v2.0/token", self._token)
        app.router.add_get("/identity", self._identity)
        super().__init__(app)

    @property
    def url(self) -> str:
        return str(self._server.make_url("/"))

    def login(self, proof: Proof) -> ClientLogin:
        return ClientLogin(self.url, TENANT, APP_ID, proof)

    def _answer(self) -> web.Response:
        self.issued += 1
        return web.json_response({"access_token": f"token-{self.issued}", "expires_in": "3599"})

    async def _token(self, request: web.Request) -> web.Response:
        form: dict[str, Any] = dict(await request.post())
        if self.refusal is not None:
            return web.json_response(self.refusal, status=401)
        assert form["grant_type"] == "client_credentials"
        assert form["scope"] == f"{RESOURCE}/.default"
        is_known = form.get("client_secret") == "secret"
        if form.get("client_assertion_type") == JWT_BEARER:
            is_known = self._is_valid(form["client_assertion"], str(request.url))
        return self._answer() if is_known else web.json_response({"error": "invalid_client"}, status=401)

    def _is_valid(self, assertion: str, url: str) -> bool:
        header = jwt.get_unverified_header(assertion)
        if self.certificate is None or header.get("kid") == "cluster":
            return self._is_federated(assertion)
        assert header["alg"] == "PS256"
        if header["x5t#S256"] != base64url_encode(self.certificate.fingerprint(SHA256())).decode():
            return False
        public: Any = self.certificate.public_key()
        claims = jwt.decode(assertion, public, algorithms=["PS256"], audience=url, issuer=APP_ID)
        assert claims["sub"] == APP_ID
        assert 0 < claims["exp"] - time.time() <= 600, "Microsoft advises ten minutes at most"
        assert claims["jti"] not in self.assertions, "each assertion is for one request"
        self.assertions.add(claims["jti"])
        return True

    def _is_federated(self, assertion: str) -> bool:
        try:
            jwt.decode(assertion, self.trusted.public_key(), algorithms=["RS256"], audience=EXCHANGE)
        except jwt.PyJWTError:
            return False
        return True

    async def _identity(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        version = asked.pop("api-version")
        assert asked == {"resource": RESOURCE, "client_id": APP_ID}
        proven = request.headers.get("X-IDENTITY-HEADER" if self.identity_key else "Metadata")
        if (version, proven) != (("2019-08-01", self.identity_key) if self.identity_key else ("2018-02-01", "true")):
            return web.Response(status=400)
        return self._answer()


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    async with Authority() as started:
        yield started


def federated(authority: Authority, file: Path, audience: str = EXCHANGE) -> Path:
    """Write the token of a cluster for one of its workloads."""
    claims = {"aud": audience, "sub": "system:serviceaccount:plumbline:plumbline", "exp": time.time() + 3600}
    file.write_text(jwt.encode(claims, authority.trusted, algorithm="RS256", headers={"kid": "cluster"}) + "\n")
    return file


async def test_each_kind_of_credentials_gets_a_token(
    authority: Authority, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    authority.certificate = certificate(tmp_path / "app.pem")
    logins: dict[str, Login] = {
        "secret": authority.login(ClientSecret("secret")),
        "certificate": authority.login(Certificate(tmp_path / "app.pem")),
        "certificate, for the second time": authority.login(Certificate(tmp_path / "app.pem")),
        "federated credential": authority.login(FederatedToken(federated(authority, tmp_path / "token"))),
        "machine": ManagedIdentity(APP_ID, f"{authority.url}identity"),
    }
    for number, (kind, login) in enumerate(logins.items(), start=1):
        assert (await login.issue(session, RESOURCE)).value == f"token-{number}", kind
    authority.identity_key = "key"
    app_service = ManagedIdentity(APP_ID, f"{authority.url}identity", "key")
    assert (await app_service.issue(session, RESOURCE)).lifetime == 3599


async def test_credentials_that_are_not_registered_are_refused(
    authority: Authority, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    authority.certificate = certificate(tmp_path / "app.pem")
    certificate(tmp_path / "another.pem")
    for proof in (
        ClientSecret("another"),
        Certificate(tmp_path / "another.pem"),
        FederatedToken(federated(authority, tmp_path / "token", audience="https://elsewhere.example")),
    ):
        with pytest.raises(CredentialsRefused, match="invalid_client"):
            await authority.login(proof).issue(session, RESOURCE)


async def test_a_renewed_certificate_is_used_without_a_restart(
    authority: Authority, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    login = authority.login(Certificate(tmp_path / "app.pem"))
    certificate(tmp_path / "app.pem")
    authority.certificate = certificate(tmp_path / "renewed.pem")
    (tmp_path / "renewed.pem").replace(tmp_path / "app.pem")
    assert (await login.issue(session, RESOURCE)).value == "token-1"


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
async def test_a_file_that_cannot_be_used_is_named(
    authority: Authority, session: aiohttp.ClientSession, tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "app.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CredentialsRefused, match=r"app\.pem"):
        await authority.login(Certificate(file)).issue(session, RESOURCE)
    file.write_bytes(certificate(tmp_path / "with-key.pem").public_bytes(Encoding.PEM))
    with pytest.raises(CredentialsRefused, match="private RSA key"):
        await authority.login(Certificate(file)).issue(session, RESOURCE)
    with pytest.raises(CredentialsRefused, match="missing"):
        await authority.login(FederatedToken(tmp_path / "missing")).issue(session, RESOURCE)


async def test_microsoft_s_own_sentence_says_why_it_refuses(
    authority: Authority, session: aiohttp.ClientSession
) -> None:
    authority.refusal = EXPIRED
    with pytest.raises(CredentialsRefused) as refused:
        await authority.login(ClientSecret("secret")).issue(session, RESOURCE)
    assert "(AADSTS7000222: The provided client secret keys for app are expired)" in str(refused.value)
    assert "Trace" not in str(refused.value)


async def test_an_authority_that_is_not_there_is_asked_again(session: aiohttp.ClientSession) -> None:
    nowhere = "http://127.0.0.1:9"
    for login in (ClientLogin(nowhere, TENANT, APP_ID, ClientSecret("")), ManagedIdentity("", nowhere)):
        with pytest.raises(TryAgain):
            await login.issue(session, RESOURCE)


def test_a_certificate_says_when_it_expires(tmp_path: Path) -> None:
    made = certificate(tmp_path / "app.pem", days=20)
    assert Certificate(tmp_path / "app.pem").expires_at() == made.not_valid_after_utc


async def test_a_token_is_kept_until_shortly_before_it_expires_or_is_refused(
    authority: Authority, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, now = AppToken(authority.login(ClientSecret("secret")), RESOURCE, session), time.monotonic()
    assert {await token.get() for _ in range(3)} == {"token-1"}
    token.refused("Bearer another")
    assert await token.header() == "Bearer token-1"
    token.refused("Bearer token-1")
    assert await token.get() == "token-2"
    monkeypatch.setattr("adapters.http.time.monotonic", lambda: now + 3599 - 200)
    assert await token.get() == "token-3"


def test_no_credential_is_shown_in_a_log() -> None:
    assert "hidden" not in repr((ClientSecret("hidden"), ManagedIdentity("", key="hidden")))
