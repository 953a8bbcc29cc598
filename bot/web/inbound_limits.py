"""Limits of inbound requests: local-only access without a secret, time limits and rate limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import HttpVersion11, web
from aiohttp.typedefs import Middleware

from adapters.section import LOOPBACK
from core.model.errors import PlumblineError, TooManyRequests
from core.model.rate_limit import TokenBuckets, client_key
from core.ports import Clock

BODY_TIMEOUT = 20.0  # seconds from the headers to the end of the body
HEADERS_TIMEOUT = 75.0  # seconds that a connection may wait for a complete request

DELIVERIES = 5_000  # burst per webhook source, enough for an alert storm
DELIVERIES_PER_SECOND = 250.0  # sustained rate
REFUSALS = 300  # burst per client, of requests without a valid credential
REFUSALS_PER_SECOND = 5.0  # sustained rate

# The headers that browsers and programs on this machine send, in lower case. Any other may be that of a proxy, a load
# balancer, a content network or a gateway that says who its user is, and there are too many of those to be listed.
_DIRECT_HEADER = re.compile(
    r"(?:accept|access-control-request|content|hx|if|sec|sentry-hook)-[a-z0-9-]{1,40}"
    r"|accept|authorization|baggage|cache-control|connection|cookie|date|dnt|expect|host|http2-settings"
    r"|idempotency-key|keep-alive|last-event-id|origin|pragma|priority|purpose|range|referer|save-data|te|traceparent|tracestate|trailer|transfer-encoding|upgrade"
    r"|upgrade-insecure-requests|user-agent|x-prometheus-scrape-timeout-seconds|(?:x-)?(?:correlation|request)-id"
    r"|x-ms-(?:agents-playground|conversation-id)|x-requested-with"
)

MAX_NAME = 60  # characters of a header's name that are repeated

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NotFromThisMachine(PlumblineError):
    """A request without a secret came through a proxy, or under a host name that is not local."""


class BodyTooSlow(PlumblineError, web.RequestPayloadError):
    """The body of a request did not arrive in time. The request was rejected.

    It is also a RequestPayloadError, so that the server treats the unread body as an aborted one.
    """


class InboundLimits:
    """Rate limits per sender. Signed chat events are never limited."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deliveries = TokenBuckets(DELIVERIES_PER_SECOND, DELIVERIES)
        self._refusals = TokenBuckets(REFUSALS_PER_SECOND, REFUSALS)

    def deliver(self, source: str) -> None:
        """Count a webhook with a valid credential. Raises TooManyRequests."""
        if seconds := self._deliveries.take(source, self._clock.now()):
            raise TooManyRequests(
                f"More than {DELIVERIES_PER_SECOND:.0f} webhooks a second came from {source}.", seconds
            )

    def refuse(self, request: web.Request) -> None:
        """Count a request without a valid credential. Raises TooManyRequests for a client that keeps sending them.

        Called after the credential was checked, so that a guessing client behind a shared proxy does not block others.
        """
        if seconds := self._refusals.take(client_key(request.remote), self._clock.now()):
            raise TooManyRequests("Too many requests without a valid credential came from this address.", seconds)


def keep_local(remedy_of: Callable[[web.Request], str]) -> Middleware:
    """Refuse requests from other machines to a route without a secret.

    `remedy_of` returns what would protect the route of a request; empty if it is protected or public.
    """

    @web.middleware
    async def kept_local(request: web.Request, handler: Handler) -> web.StreamResponse:
        if remedy := remedy_of(request):
            check_direct(request, remedy)
            check_local_name(request, remedy)
        return await handler(request)

    return kept_local


def check_direct(request: web.Request, remedy: str) -> None:
    """Raise NotFromThisMachine for a request that may have come through a proxy, whose sender may be anywhere.

    A proxy is known by a header that programs on this machine do not send. Some proxies add none but speak HTTP/1.0, which
    hardly any program on this machine does.
    """
    foreign = next((name for name in request.headers if not _DIRECT_HEADER.fullmatch(name.lower())), "")
    if foreign or request.version < HttpVersion11:
        sign = f"it has the header {foreign[:MAX_NAME]}" if foreign else "it is of HTTP/1.0"
        raise NotFromThisMachine(
            f"This request seems to come through a proxy: {sign}. This address is not protected by a secret: {remedy}."
        )


def check_local_name(request: web.Request, remedy: str) -> None:
    """Raise NotFromThisMachine for a request to another host name.

    A foreign name that resolves to 127.0.0.1 would let a foreign web page call us (DNS rebinding).
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
    """Abort requests whose body does not arrive in time, however it is read."""
    timer = asyncio.get_running_loop().call_later(BODY_TIMEOUT, _give_up, request)
    try:
        return await handler(request)
    finally:
        timer.cancel()


def _give_up(request: web.Request) -> None:
    if not request.content.is_eof():
        request.content.set_exception(BodyTooSlow(f"The body did not arrive within {BODY_TIMEOUT:.0f} seconds."))
