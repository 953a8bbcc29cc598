"""The section `sign_in` of plumbline.yaml: the provider with which people sign in, and what its groups may see and do; and
access control of the local page: who sent a request, and what no browser may do with the page.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Annotated, Literal, get_args

from aiohttp import web
from pydantic import Field

from adapters.section import EnvironmentName, Section, Url
from core.incidents.readable import readable
from core.model.conversation import OPERATOR, Audience, Channel, Person, Place, Platform, channel_audience
from core.model.errors import Forbidden, TooManyRequests, Unauthorized
from core.model.incident import Incident, may_see_incident
from core.model.running import TokenBuckets, client_key
from core.ports import Clock

Role = Literal["viewer", "responder", "operator"]
"""A viewer reads. A responder also asks, and presses buttons. An operator also sees sources, predictions, dead letters and
the audit log, and retries."""

ROLES: tuple[Role, ...] = get_args(Role)  # each includes those before it


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person at the local page. Without an `audience`, everything is shown, as to those who hold the console token."""

    person: Person
    role: Role
    audience: Audience | None = None

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def sees(self, place: Place, channels: Sequence[Channel]) -> bool:
        """Return whether the person may read a place. Here and below, `channels` are the channels as they are now."""
        return self.audience is None or self.audience.may_read(channel_audience(place, channels).disclosed_to)

    def shown(self, incident: Incident, channels: Sequence[Channel]) -> Incident | None:
        """Return an incident as far as the person may read it; None if the person may not see it."""
        if self.audience is None:
            return incident
        return (
            readable(incident, self.audience, channels) if may_see_incident(self.audience, incident, channels) else None
        )


Name = Annotated[str, Field(min_length=1)]


class GroupSection(Section):
    """The rights of a group: a role, and the private channels whose texts it may read, beside what everybody may."""

    role: Role = "viewer"
    channels: tuple[str, ...] = ()


class SignInSection(Section):
    """An OpenID provider, such as Entra ID, Okta or Keycloak, where Plumbline is registered as a confidential client.

    `groups` are the values of `groups_claim`; who is in none of them is not let in. `id_claim` is what identifies a person:
    `oid` with Entra ID, which Teams knows too. With `managed_addresses`, an address counts although the provider does not
    call it verified, because only administrators set it. `client_certificate` is a PEM file with a certificate and its
    private RSA key, in place of `client_secret_env` (RFC 7523, `private_key_jwt`, signed with PS256). `agents_audience` is the audience of the access tokens with which
    agents may call `/mcp`; the address of `/mcp` unless it is given.
    """

    issuer: Url
    client_id: Name
    client_secret_env: EnvironmentName = "PLUMBLINE_SIGN_IN_SECRET"  # noqa: S105 -- the name of a variable
    client_certificate: Path | None = None
    groups: Annotated[dict[Name, GroupSection], Field(min_length=1)]
    scopes: tuple[Name, ...] = ("openid", "profile", "email")
    groups_claim: Name = "groups"
    id_claim: Name = "sub"
    managed_addresses: bool = False
    agents_audience: str = ""


AccountOf = Callable[[web.Request], Awaitable[Visitor | None]]
VISITOR = web.RequestKey("visitor", Visitor)  # of a request that was let in
HOLDER = Visitor(OPERATOR, "operator")  # of the token, or on this machine: the page then has no accounts
UNKNOWN = Visitor(Person(Platform.CONSOLE, "unknown"), "viewer", Audience())  # of a request that was not let in


class NotBegun(Unauthorized):
    """The reply of a provider to a browser that asked nothing. Anybody can send a browser there, so it is not recorded."""


COOKIE = "plumbline_console"
SESSION = 12 * 3600  # seconds that a browser stays logged in
MAX_BEGIN_DIGITS = 12
SAFE_METHODS = frozenset({"GET", "HEAD"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join(
        f"{feature}=()"
        for feature in ("camera", "clipboard-read", "display-capture", "geolocation", "microphone", "payment", "usb")
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


WRONG_TOKENS = 10  # burst per client
WRONG_TOKENS_PER_SECOND = 0.1  # sustained rate per client


class Guard:
    """Grants access to people with accounts and with the token; without both, to all whom the application lets through."""

    def __init__(self, token: str | None, clock: Clock, account_of: AccountOf | None = None) -> None:
        self._token = token
        self._account_of = account_of
        self._is_open = token is None and account_of is None
        self._clock = clock
        self._guesses = TokenBuckets(WRONG_TOKENS_PER_SECOND, WRONG_TOKENS)

    def check_origin(self, request: web.Request) -> None:
        """Raise Forbidden for a request that another site's page made this browser send.

        This follows https://words.filippo.io/csrf: browsers state the origin of a form in Sec-Fetch-Site or Origin. A
        client that states neither is not a browser, unless it sends a cookie; then it is refused.
        """
        if request.method in SAFE_METHODS:
            return
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        ours = (None, f"http://{request.host}", f"https://{request.host}")  # for either scheme of a proxy
        is_ours = site in (None, "same-origin", "none") and origin in ours
        if not is_ours or (site is None and origin is None and request.cookies):
            raise Forbidden("Another site sent this request. Open this page directly and try again.")

    async def visitor(self, request: web.Request) -> Visitor:
        """Return who sends a request: with a session of an account, the person; else HOLDER.

        Raises Unauthorized without a valid cookie or `Authorization: Bearer` header, unless there are neither accounts nor
        a token; TooManyRequests.
        """
        if self._account_of is not None and (visitor := await self._account_of(request)):
            return visitor
        if self._is_open or self._is_session(request.cookies.get(COOKIE, "")):
            return HOLDER
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self.knows(request, bearer):
            raise Unauthorized("Sign in to see this. If you were signed in, load the page again.")
        return HOLDER

    def knows(self, request: web.Request, token: str) -> bool:
        """Return whether the token is right. Raises TooManyRequests, without checking, after too many wrong ones."""
        client, now = client_key(request.remote), self._clock.now()
        if seconds := self._guesses.wait(client, now):
            raise TooManyRequests(
                f"Too many wrong tokens came from this address: try again in {ceil(seconds)} seconds.", seconds
            )
        if self._token is not None and _equal(token, self._token):
            return True
        self._guesses.take(client, now)
        return False

    def log_in(self, request: web.Request, response: web.StreamResponse) -> None:
        """Log this browser in until the session ends."""
        secure = request.secure or request.headers.get("X-Forwarded-Proto") == "https"
        session = self._session(int(self._clock.now().timestamp()))
        response.set_cookie(COOKIE, session, max_age=SESSION, path="/", httponly=True, samesite="Strict", secure=secure)

    def _session(self, begin: int) -> str:
        """Return the cookie's content: proof of the token since `begin` (seconds), which does not reveal the token."""
        proof = hmac.new((self._token or "").encode(), f"plumbline console session {begin}".encode(), hashlib.sha256)
        return f"{begin}.{proof.hexdigest()}"

    def _is_session(self, cookie: str) -> bool:
        begin = cookie.partition(".")[0]
        if self._token is None or not (begin.isascii() and begin.isdigit() and len(begin) <= MAX_BEGIN_DIGITS):
            return False
        return self._clock.now().timestamp() - int(begin) < SESSION and _equal(cookie, self._session(int(begin)))


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
