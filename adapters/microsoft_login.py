"""Access tokens of Microsoft for an application, which signs in with a secret, a certificate, a federated credential or a
managed identity.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
https://learn.microsoft.com/entra/identity-platform/certificate-credentials
https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
"""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from adapters.edge import line_of
from adapters.http import SOURCE, TryAgain, exchange
from core.model.errors import SourceUnavailable

LOGIN_URL = "https://login.microsoftonline.com"
METADATA_URL = (
    "http://169.254.169.254/metadata/identity/oauth2/token"  # of a virtual machine of Azure, and of its clusters
)
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_LIFETIME = 300.0  # seconds
TIMEOUT = 10.0  # seconds
RENEW_BEFORE = 300.0  # seconds before a token expires
TOLD_BEFORE = timedelta(days=30)  # an expiry of credentials
_CODE = re.compile(r"AADSTS\d+: [^.\r\n]*+")
"""Microsoft's number for a refusal, with its first sentence. The following ones identify the request."""


class CredentialsRefused(SourceUnavailable):
    """Microsoft issues no token for these credentials until somebody corrects them."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """An access token, and its lifetime in seconds."""

    value: str
    lifetime: float


class Login(Protocol):
    """The way in which an application gets its tokens."""

    async def issue(self, session: aiohttp.ClientSession, resource: str) -> IssuedToken:
        """Request a token for a resource. Raises TryAgain for a temporary failure, else CredentialsRefused."""
        ...

    def expires_at(self) -> datetime | None:
        """Return when the credentials expire; None if they do not, or do not say. Raises CredentialsRefused."""
        return None


class Proof(Protocol):
    """The credentials of an application."""

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        """Return the fields of a request to `url` for a token. Raises CredentialsRefused if a file cannot be used."""
        ...

    def expires_at(self) -> datetime | None:
        return None


@dataclass(frozen=True)
class ClientSecret(Proof):
    """A client secret. It does not say when it expires."""

    value: str = field(repr=False)

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        return {"client_secret": self.value}


@dataclass(frozen=True)
class FederatedToken(Proof):
    """The token of another issuer that the application trusts, such as a Kubernetes cluster, which renews it in a file."""

    file: Path

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": _read(self.file).decode().strip()}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A PEM file with a private RSA key and its certificate. It is read for each token, so that it can be renewed."""

    file: Path

    def fields(self, url: str, client_id: str) -> Mapping[str, str]:
        import jwt
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from jwt.utils import base64url_encode

        now = time.time()
        claims = {"aud": url, "iss": client_id, "sub": client_id, "jti": str(uuid.uuid4())}
        claims |= {"nbf": now - ASSERTION_LIFETIME, "exp": now + ASSERTION_LIFETIME}
        thumbprint = base64url_encode(self._certificate().fingerprint(SHA256())).decode()
        try:
            key: Any = load_pem_private_key(_read(self.file), None)
            assertion = jwt.encode(claims, key, algorithm="PS256", headers={"x5t#S256": thumbprint})
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise CredentialsRefused(f"{self.file} has no private RSA key without a password: {error}.") from None
        return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}

    def expires_at(self) -> datetime | None:
        return self._certificate().not_valid_after_utc

    def _certificate(self) -> Any:
        from cryptography.x509 import load_pem_x509_certificate

        try:
            return load_pem_x509_certificate(_read(self.file))
        except ValueError:
            raise CredentialsRefused(f"{self.file} has no certificate in PEM form.") from None


def first_proof(secret: str, certificate: Path | None, federated_token: Path | None) -> Proof | None:
    """Return the first of the credentials that is given; None for a managed identity, which needs none."""
    if secret:
        return ClientSecret(secret)
    return Certificate(certificate) if certificate else federated_token and FederatedToken(federated_token)


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """An application registered in a tenant, with its own credentials (RFC 6749, section 4.4; RFC 7523)."""

    login_url: str
    tenant: str
    client_id: str
    proof: Proof

    async def issue(self, session: aiohttp.ClientSession, resource: str) -> IssuedToken:
        url = f"{self.login_url.rstrip('/')}/{self.tenant}/oauth2/v2.0/token"
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "scope": f"{resource}/.default"}
        return await _issued(session, "POST", url, data=form | dict(self.proof.fields(url, self.client_id)))

    def expires_at(self) -> datetime | None:
        return self.proof.expires_at()


@dataclass(frozen=True)
class ManagedIdentity(Login):
    """An identity that Azure gives to a machine, a cluster or an App Service, without credentials of its own.

    An App Service names its own `endpoint`, and a `key` for it.
    """

    client_id: str
    endpoint: str = METADATA_URL
    key: str = field(default="", repr=False)

    async def issue(self, session: aiohttp.ClientSession, resource: str) -> IssuedToken:
        version = "2019-08-01" if self.key else "2018-02-01"
        query = {"api-version": version, "resource": resource, "client_id": self.client_id}
        headers = {"X-IDENTITY-HEADER": self.key} if self.key else {"Metadata": "true"}
        return await _issued(session, "GET", self.endpoint, params=query, headers=headers)


class AppToken:
    """The access token of an application for one resource, requested when first needed and renewed before it expires.

    Implements `adapters.http.Credentials`.
    """

    def __init__(self, login: Login, resource: str, session: aiohttp.ClientSession) -> None:
        self.login = login
        self._resource = resource
        self._session = session
        self._token = ""
        self._renew_at = 0.0
        self._requesting = asyncio.Lock()

    async def get(self) -> str:
        """Return the token. Raises the errors of `Login.issue`."""
        async with self._requesting:
            if not self._token or time.monotonic() >= self._renew_at:
                issued = await self.login.issue(self._session, self._resource)
                self._token = issued.value
                self._renew_at = time.monotonic() + max(issued.lifetime - RENEW_BEFORE, 0.0)
            return self._token

    async def header(self) -> str:
        return f"Bearer {await self.get()}"

    def refused(self, header: str) -> bool:
        """Discard the refused token. Returns True, because a new one may be accepted."""
        if header == f"Bearer {self._token}":
            self._token = ""
        return True


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CredentialsRefused(f"{file} cannot be read: {error.strerror}.") from None


async def _issued(session: aiohttp.ClientSession, method: str, url: str, **options: Any) -> IssuedToken:
    answer = await exchange(
        session, method, url, system="Microsoft's login", errors=SOURCE, seconds=TIMEOUT, max_body=1 << 20, **options
    )
    if answer.may_pass:
        raise TryAgain(f"Microsoft did not issue a token (HTTP status {answer.status}).", answer.retry_after)
    try:
        reply = json.loads(answer.body)
        if answer.status == 200:
            return IssuedToken(str(reply["access_token"]), float(reply["expires_in"]))
        numbered = _CODE.search(str(reply.get("error_description")))
        code = numbered[0] if numbered else str(reply.get("error") or f"HTTP status {answer.status}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TryAgain(f"Microsoft did not issue a token: {type(error).__name__}.") from None
    raise CredentialsRefused(
        f"Microsoft did not issue a token ({line_of(code, 200)}): check the tenant, the client id and its credentials."
    )
