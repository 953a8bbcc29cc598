"""Rules for every inbound door: who is let in without a secret, how long a body may take, how often one may come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import ceil
from urllib.parse import urlsplit

from aiohttp import HttpVersion11, web
from aiohttp.typedefs import Middleware

from bot.config.settings import LOOPBACK
from core.model.errors import PlumblineError
from core.model.rate_limit import RateLimit, client_key
from core.ports import Clock

BODY_TIMEOUT = 20.0  # seconds from the headers to the end of the body
HEADERS_TIMEOUT = 75.0  # seconds that a connection may stand without a whole request

DELIVERIES = 5_000  # that a webhook source may send at once: an alerting system's storm
DELIVERIES_PER_SECOND = 250.0  # that it may send for good
REFUSALS = 300  # requests without a valid credential that a client may send at once
REFUSALS_PER_SECOND = 5.0  # that it may send for good

PROXY_HEADERS = ("Forwarded", "Via", "X-Real-IP", "X-Client-IP", "X-Original-Host")
PROXY_PREFIX = "x-forwarded-"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NotFromThisMachine(PlumblineError):
    """A request to a door without a secret came through a proxy, or under a name that is not this machine's."""


class TooManyRequests(PlumblineError):
    """A sender comes more often than it may. Nothing was accepted; it should wait and send again."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.retry_after = ceil(seconds)


class BodyTooSlow(PlumblineError, web.RequestPayloadError):
    """The body of a request did not arrive in time. Nothing was accepted.

    The server meets it again when it throws the rest of the body away, and takes it for one that broke off.
    """


class Doors:
    """Counts senders. What a chat sends and signs is never counted: it is refused by nothing but its signature."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deliveries = RateLimit(DELIVERIES_PER_SECOND, DELIVERIES)
        self._refusals = RateLimit(REFUSALS_PER_SECOND, REFUSALS)

    def deliver(self, source: str) -> None:
        """A webhook with a valid credential. Raises TooManyRequests."""
        if seconds := self._deliveries.take(source, self._clock.now()):
            raise TooManyRequests(
                f"More than {DELIVERIES_PER_SECOND:.0f} webhooks a second came from {source}.", seconds
            )

    def refuse(self, request: web.Request) -> None:
        """A request without a valid credential. Raises TooManyRequests if its sender goes on in spite of refusals.

        Asked after the credential was looked at: behind a proxy, one who guesses shuts nobody else out.
        """
        if seconds := self._refusals.take(client_key(request.remote), self._clock.now()):
            raise TooManyRequests("Too many requests without a valid credential came from this address.", seconds)


def keep_local(remedy_of: Callable[[web.Request], str]) -> Middleware:
    """Refuse what other machines send to a door without a secret.

    `remedy_of` returns what would give the door of a request a secret; empty: it has one, or needs none.
    """

    @web.middleware
    async def kept_local(request: web.Request, handler: Handler) -> web.StreamResponse:
        if remedy := remedy_of(request):
            check_direct(request, remedy)
            check_local_name(request, remedy)
        return await handler(request)

    return kept_local


def check_direct(request: web.Request, remedy: str) -> None:
    """Raises NotFromThisMachine for a request that a proxy passed on: its sender may be anywhere.

    Some proxies add no header, but speak HTTP/1.0, which nothing else does that is sent to us.
    """
    headers = request.headers
    is_forwarded = any(name in headers for name in PROXY_HEADERS) or any(
        name.lower().startswith(PROXY_PREFIX) for name in headers
    )
    if is_forwarded or request.version < HttpVersion11:
        raise NotFromThisMachine(
            f"This request came through a proxy, and this address is not protected by a secret: {remedy}."
        )


def check_local_name(request: web.Request, remedy: str) -> None:
    """Raises NotFromThisMachine for a request that names another host.

    A name of somebody else's that leads to 127.0.0.1 would let a page of theirs speak with us (DNS rebinding).
    """
    host = request.headers.get("Host", "")
    if _host_name(host) not in LOOPBACK:
        raise NotFromThisMachine(f"Without a secret, this address answers only localhost, not {host[:200]}: {remedy}.")


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


@web.middleware
async def bound_waiting(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give up a body that does not arrive, however its reader reads it."""
    timer = asyncio.get_running_loop().call_later(BODY_TIMEOUT, _give_up, request)
    try:
        return await handler(request)
    finally:
        timer.cancel()


def _give_up(request: web.Request) -> None:
    if not request.content.is_eof():
        request.content.set_exception(BodyTooSlow(f"The body did not arrive within {BODY_TIMEOUT:.0f} seconds."))
