"""Limits of inbound requests, and the requests that were refused or read in part."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from aiohttp import HttpVersion11, web
from aiohttp.typedefs import Middleware
from prometheus_client import Counter
from pydantic import TypeAdapter, ValidationError

from adapters.section import LOOPBACK
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.errors import PlumblineError, TooManyRequests
from core.model.running import TokenBuckets, client_key
from core.ports import Clock

BODY_TIMEOUT = 20.0  # seconds from the headers to the end of the body
HEADERS_TIMEOUT = 75.0  # seconds that a connection may wait for a complete request

DELIVERIES = 5_000  # burst per webhook source, enough for an alert storm
DELIVERIES_PER_SECOND = 250.0  # sustained rate
REFUSED_BURST = 300  # burst per client, of requests without a valid credential
REFUSED_PER_SECOND = 5.0  # sustained rate

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
        self._refusals = TokenBuckets(REFUSED_PER_SECOND, REFUSED_BURST)

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


FILE = "refusals.json"
MAX_KEPT = 50  # different refusals
MAX_DETAIL = 500  # characters
INTERVAL = 1.0  # seconds between two writings, whatever a stranger sends
ACCEPTED = 202
REASONS = {
    ACCEPTED: "read in part",
    400: "malformed",
    401: "wrong secret",
    403: "not from this machine",
    404: "unknown address",
    408: "too slow",
    413: "too large",
    429: "too many",
}

REFUSALS = Counter("plumbline_refusals_total", "Requests that were refused, or read in part", ["sender", "reason"])

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Equal refusals of a sender, of which the latest was at the ISO time `at`. `detail` is redacted."""

    at: str
    sender: str
    reason: str
    detail: str
    times: int = 1


_FILE = TypeAdapter(list[Refusal])


class Refusals:
    """Keeps the latest refusals in a file of the data folder, redacted; None keeps them in memory."""

    def __init__(self, folder: Path | None = None, redact: Redact = without_redaction) -> None:
        self._file = folder / FILE if folder is not None else None
        earlier = read_refusals(folder) if folder is not None else []
        self._kept = {(each.sender, each.detail): each for each in earlier}
        self._written = float("-inf")
        # Strangers get sentences of ours, which are always the same: they are redacted once.
        self._redacted = lru_cache(MAX_KEPT)(partial(redacted, redact=redact))

    def add(self, at: str, sender: str, status: int, sentence: str) -> None:
        """Record a refusal, or with ACCEPTED that of a part of a request, which its reader has logged.

        A sentence is ours, and holds at most a short quotation of what was sent. Equal ones are kept once, so that a
        stranger cannot displace the others.
        """
        reason, detail = REASONS.get(status, "other"), self._redacted(sentence[:MAX_DETAIL])
        REFUSALS.labels(sender, reason).inc()
        if status != ACCEPTED:
            log.warning("request refused", sender=sender, reason=reason, status=status, detail=detail)
        earlier = self._kept.pop((sender, detail), None)
        self._kept[sender, detail] = Refusal(
            at, sender, reason, detail, earlier.times + 1 if earlier is not None else 1
        )
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        if time.monotonic() - self._written >= INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Write the file, for example before the process ends."""
        self._written = time.monotonic()
        if self._file is not None and self._kept:
            with suppress(OSError):  # a full disk must not turn a refusal into an error
                part = self._file.with_suffix(".part")
                part.write_bytes(_FILE.dump_json(list(self._kept.values())))
                part.replace(self._file)


def read_refusals(folder: Path) -> list[Refusal]:
    """Return the latest refusals, oldest first."""
    try:
        return _FILE.validate_json((folder / FILE).read_bytes())
    except (OSError, ValidationError):
        return []
