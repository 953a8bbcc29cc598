"""Who may load the local page, and with what headers it is served."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from aiohttp import web

from core.errors import PlumblineError, Unauthorized

COOKIE = "plumbline_console"
SESSION = 12 * 3600  # seconds that a browser stays logged in
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Forbidden(PlumblineError):
    """A request to the local page comes from another site, or under a name that is not this machine's."""


class Guard:
    """Lets in who knows the token; without a token, only who asks for this machine by its local name."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def check_origin(self, request: web.Request) -> None:
        """Raises Forbidden for a request that another site's page made this browser send."""
        if self._token is None and _host_name(request.host) not in LOCAL_NAMES:
            # A name of somebody else's that leads to 127.0.0.1 would let their page read this one (DNS rebinding).
            raise Forbidden(
                f"Without PLUMBLINE_CONSOLE_TOKEN this page answers to localhost only, not to {request.host[:200]}."
            )
        origin = request.headers.get("Origin")
        if request.method != "GET" and origin is not None and urlsplit(origin).netloc != request.host:
            raise Forbidden("Another site asked for this: load this page itself and try again.")

    def check_token(self, request: web.Request) -> None:
        """Raises Unauthorized without a valid cookie or `Authorization: Bearer` header, if there is a token."""
        if self._token is None:
            return
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.knows(bearer):
            return
        if not _equal(request.cookies.get(COOKIE, ""), self._session()):
            raise Unauthorized("This page needs the console token: log in first.")

    def knows(self, token: str) -> bool:
        return self._token is not None and _equal(token, self._token)

    def log_in(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let this browser in until the session ends."""
        secure = request.secure or request.headers.get("X-Forwarded-Proto") == "https"
        response.set_cookie(
            COOKIE, self._session(), max_age=SESSION, path="/", httponly=True, samesite="Strict", secure=secure
        )

    def _session(self) -> str:
        """What the cookie holds: proof of the token that does not give the token away."""
        return hmac.new((self._token or "").encode(), b"plumbline console session", hashlib.sha256).hexdigest()


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
