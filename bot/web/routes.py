"""All inbound routes: verify, parse, record and acknowledge. The work is done after the response.

Requests have limits. Those that were refused, or read in part, are kept for `doctor`.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import secrets
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware
from prometheus_client import CONTENT_TYPE_LATEST, Counter, generate_latest
from pydantic import TypeAdapter, ValidationError

from adapters.chat import CHATS, DOCTOR
from adapters.protected_resource import PATH as MCP
from adapters.protected_resource import WELL_KNOWN
from adapters.section import LOOPBACK
from bot import telemetry
from bot.tracing import request_span
from bot.web.webhook_sources import WebhookSource
from core.knowledge.redactor import Redact, redacted, without_redaction
from core.model.alert import AlertDelivery
from core.model.conversation import Platform
from core.model.errors import (
    Forbidden,
    InputTooLarge,
    MalformedInput,
    PlumblineError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from core.model.running import TokenBuckets, client_key
from core.model.text import counted
from core.ports import Clock

if TYPE_CHECKING:
    from adapters.agents import AgentEndpoint

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


MAX_BODY = 8 * 1024 * 1024  # bytes of a webhook; chats are limited to 1 MiB
LARGE_BODY = 256 * 1024  # bytes above which parsing would block the event loop noticeably

SENDERS = {MCP: "mcp", "/metrics": "metrics"}  # by route, besides chats and webhooks
PAGE = "local page"
SNS_HEADER = "x-amz-sns-message-type"
CHALLENGE = 'Basic realm="Plumbline"'  # Amazon SNS sends the password of an address only when it is asked for
UNREAD = web.RequestKey("unread", tuple[str, ...])  # of a request, the parts of it that were left out

RETRY_AFTER = 5  # default for Retry-After, in seconds

AGENT_METADATA = (WELL_KNOWN, f"{WELL_KNOWN}{MCP}")
TO_AGENTS = "MCP, list the agents under `agents` in plumbline.yaml, or the provider under `sign_in`"
TO_PROMETHEUS = "let Prometheus read /metrics directly, at an address that PLUMBLINE_HOST names"

STATUSES: dict[type[PlumblineError], int] = {
    Unauthorized: 401,
    Forbidden: 403,
    NotFromThisMachine: 403,
    InputTooLarge: 413,
    MalformedInput: 400,
    BodyTooSlow: 408,
}


class Webhooks:
    """`POST /webhooks/SOURCE`: alert deliveries of all monitoring systems."""

    def __init__(
        self,
        sources: Mapping[str, WebhookSource],
        accept: Callable[[AlertDelivery], Awaitable[str | None]],
        secret: str | None,
        clock: Clock,
    ) -> None:
        """Create the handler. `accept` stores a delivery and returns the id of its incident, None if nothing changed.

        `secret` is required from every source without a secret of its own; None requires nothing.
        """
        self._sources = sources
        self._accept = accept
        self._secret = secret
        self._clock = clock
        self.limits = InboundLimits(clock)

    async def handle(self, request: web.Request) -> web.Response:
        name = request.match_info["source"]
        source = self._sources.get(name)
        await self._authenticate(request, source)
        if source is None:
            names = ", ".join(sorted(self._sources))
            return refusal(404, f"There is no webhook for {name[:50]!r}: use one of {names}.")
        # A web page could send a form to a bot without a secret, but neither JSON nor this header of Amazon SNS, whose
        # type is text/plain, without a CORS preflight.
        if request.content_type != "application/json" and SNS_HEADER not in request.headers:
            raise MalformedInput("A webhook must be JSON. Send Content-Type: application/json.")
        self.limits.deliver(name)
        body = await request.read()
        now = self._clock.now()
        parse = source.parse
        delivery = await asyncio.to_thread(parse, body, now) if len(body) > LARGE_BODY else parse(body, now)
        incident = await self._accept(delivery) if delivery is not None else None
        request[UNREAD] = delivery.unread if delivery is not None else ()
        outcome = "accepted" if incident else "deduplicated" if delivery is not None else "no alert"
        telemetry.DELIVERIES.labels(name, outcome).inc()
        return web.json_response({"incident": incident}, status=202)

    def sender_of(self, request: web.Request) -> str:
        """Return the source that a request names, if there is one of this name: names of strangers are not counted."""
        name = request.match_info.get("source", "")
        return name if name in self._sources else "unknown webhook"

    def now(self) -> datetime:
        return self._clock.now()

    def has_secret(self, name: str) -> bool:
        """Return whether senders to this source must present a secret."""
        source = self._sources.get(name)
        return bool((source.secret if source is not None else None) or self._secret)

    async def _authenticate(self, request: web.Request, source: WebhookSource | None) -> None:
        """Check the secret, or a signature made with it."""
        secret = (source.secret if source is not None else None) or self._secret
        if secret is None:
            return
        given = _given_secret(request).encode(errors="surrogateescape")
        if hmac.compare_digest(given, secret.encode(errors="surrogateescape")):
            return
        if source is None or source.is_signed is None:
            raise Unauthorized(
                "The webhook secret is missing or wrong: send PLUMBLINE_WEBHOOK_SECRET, or the secret of this webhook's "
                "`secret_env`, as bearer token.",
                CHALLENGE,
            )
        if not source.is_signed(request.headers, await request.read(), secret):
            raise Unauthorized(
                "The webhook has neither a valid signature nor a valid bearer token. Set "
                "`secret_env` under `webhooks` in plumbline.yaml, or send PLUMBLINE_WEBHOOK_SECRET."
            )


def _given_secret(request: web.Request) -> str:
    """Return the bearer token, or the password of basic authentication."""
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() == "basic":
        try:
            return b64decode(credentials, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


async def _nothing() -> list[str]:
    return []


def build_app(
    *,
    webhooks: Webhooks,
    chats: Mapping[Platform, Handler],
    playgrounds: Collection[Platform] = (),
    agents: AgentEndpoint | None = None,
    ready: Callable[[], Awaitable[str]],
    closed: Callable[[], Awaitable[list[str]]] = _nothing,
    add_console: Callable[[web.Application], None],
    refresh_metrics: Callable[[], Awaitable[object]] = _nothing,
    is_page_guarded: bool = False,
    is_scraped: bool = False,
    refusals: Refusals | None = None,
) -> web.Application:
    """Return the application with all routes.

    `ready` returns what is missing, or an empty string, `closed` a sentence for each chat that takes no messages; `refresh_metrics` refreshes the metrics from the database.
    Without accounts and a token (`is_page_guarded`), the page answers only to this machine. So do chats that are `playgrounds`,
    and the metrics, unless they are scraped from other machines (`is_scraped`).
    """
    declared = {chat.path: chat for chat in CHATS.all().values()}

    def remedy_of(request: web.Request) -> str:
        if isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed):  # clients of MCP try GET first
            return ""
        match _path_of(request):
            case "/webhooks/{source}":
                return "" if webhooks.has_secret(request.match_info["source"]) else "set PLUMBLINE_WEBHOOK_SECRET"
            case path if path in declared:
                return f"set {' and '.join(declared[path].required)}" if declared[path].platform in playgrounds else ""
            case "/metrics":
                return "" if is_scraped else TO_PROMETHEUS
            case path if path in (
                MCP,
                "/healthz",
                "/readyz",
                *AGENT_METADATA,
            ):  # signed, with a token, or not confidential
                return ""
            case _:
                return "" if is_page_guarded else "set PLUMBLINE_CONSOLE_TOKEN"

    middlewares = [
        _measure,
        _recorded_refusals(
            webhooks, SENDERS | {path: chat.platform for path, chat in declared.items()}, refusals or Refusals()
        ),
        _answer_errors,
        _counted_refusals(webhooks.limits),
        keep_local(remedy_of),
        bound_waiting,
    ]
    app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares)
    app.router.add_post("/webhooks/{source}", webhooks.handle)
    for path, chat in declared.items():
        app.router.add_post(
            path, chats.get(chat.platform) or _not_configured(f"{chat.title}, set {' and '.join(chat.required)}")
        )
    app.router.add_post(MCP, agents.handle if agents else _not_configured(TO_AGENTS))
    for path in AGENT_METADATA:
        app.router.add_get(path, _agent_metadata(agents))
    app.router.add_get("/healthz", _healthy)
    app.router.add_get("/readyz", _readiness(ready, closed))
    app.router.add_get("/metrics", _metrics(refresh_metrics))
    add_console(app)
    return app


def is_server_fault(record: logging.LogRecord) -> bool:
    """Filter aiohttp's log: invalid HTTP was answered with status 400 and is not logged."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, (HttpProcessingError, web.RequestPayloadError))


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an error response with one sentence as JSON."""
    return web.json_response({"error": sentence}, status=status, headers=headers)


def _not_configured(what: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return refusal(404, f"This is not configured. To use {what}.")

    return handle


def _agent_metadata(agents: AgentEndpoint | None) -> Handler:
    """Answer with the metadata of the MCP server, which clients look for at two addresses (RFC 9728, section 3.1)."""
    if agents is None:
        return _not_configured(TO_AGENTS)
    metadata = agents.resource.metadata

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response(metadata)

    return handle if metadata else _not_configured("the metadata of MCP, set PLUMBLINE_PUBLIC_URL to https://HOST")


async def _healthy(request: web.Request) -> web.StreamResponse:
    return web.Response(text="ok\n")


def _readiness(ready: Callable[[], Awaitable[str]], closed: Callable[[], Awaitable[list[str]]]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        missing = await ready()
        return web.Response(
            text="\n".join([missing] if missing else ["ready", *await closed()]) + "\n", status=503 if missing else 200
        )

    return handle


def _metrics(refresh_metrics: Callable[[], Awaitable[object]]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        check_direct(request, TO_PROMETHEUS)
        await refresh_metrics()
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return handle


def _path_of(request: web.Request) -> str:
    """Return the path of the route with its variables by name; "none" if there is no route."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "none"


@web.middleware
async def _measure(request: web.Request, handler: Handler) -> web.StreamResponse:
    started = time.perf_counter()
    route = _path_of(request)
    with request_span(f"{request.method} {route}"):
        response = await handler(request)
    telemetry.REQUESTS.labels(route, response.status).inc()
    telemetry.ACKNOWLEDGEMENT.labels(route).observe(time.perf_counter() - started)
    return response


def _recorded_refusals(webhooks: Webhooks, senders: Mapping[str, str], refusals: Refusals) -> Middleware:
    @web.middleware
    async def recorded(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        path = _path_of(request)
        sender = webhooks.sender_of(request) if path == "/webhooks/{source}" else senders.get(path, PAGE)
        is_harmless = (
            path == "none"
            or (sender == PAGE and response.status == 404)  # an old bookmark
            # `doctor` asks whether credentials are asked for.
            or (request.headers.get("User-Agent") == DOCTOR and "Authorization" not in request.headers)
        )
        if not is_harmless and (sentence := _refused(request, response)) is not None:
            refusals.add(webhooks.now().isoformat(timespec="seconds"), sender, response.status, sentence)
        return response

    return recorded


def _refused(request: web.Request, response: web.StreamResponse) -> str | None:
    """Return why a request was refused, or which parts of it; None if none was."""
    if unread := request.get(UNREAD):
        return f"{counted(len(unread), 'part')} left out: {'; '.join(unread)}"
    if not 400 <= response.status < 500 or not isinstance(response, web.Response):
        return None
    body = str(response.text or "")
    return str(json.loads(body)["error"]) if body.startswith('{"error": "') else body


def _counted_refusals(limits: InboundLimits) -> Middleware:
    @web.middleware
    async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Unauthorized:
            limits.refuse(request)
            raise

    return limited


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Convert every error to a status and a sentence; an unexpected one to a reference to the log."""
    try:
        return await handler(request)
    except PlumblineError as error:
        return _our_refusal(request, error)
    except (web.RequestPayloadError, ConnectionResetError):
        return refusal(400, "The body is incomplete or cannot be decoded. Send it again.")
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _http_refusal(error)
    except Exception:
        reference = secrets.token_hex(4)
        log.exception("request failed", path=request.path, reference=reference)
        return refusal(500, f"An internal error occurred. See the log for reference {reference}.")


def _our_refusal(request: web.Request, error: PlumblineError) -> web.Response:
    if isinstance(error, Unavailable):
        return refusal(503, str(error), {"Retry-After": str(int(error.retry_after or RETRY_AFTER))})
    if isinstance(error, TooManyRequests):
        return refusal(429, str(error), {"Retry-After": str(error.retry_after)})
    if isinstance(error, Unauthorized) and error.challenge:
        return refusal(401, str(error), {"WWW-Authenticate": error.challenge})
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    if status == 500:
        log.error("request failed", path=request.path, error=str(error))
    return refusal(status, str(error))


def _http_refusal(error: web.HTTPException) -> web.Response:
    match error:
        case web.HTTPRequestEntityTooLarge():
            return refusal(413, f"The body is larger than {MAX_BODY // 1024 // 1024} MiB. Send less at once.")
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(error.allowed_methods))
            return refusal(405, f"This address does not accept {error.method}. Use {allowed}.", {"Allow": allowed})
        case web.HTTPNotFound():
            return refusal(404, "There is nothing at this address.")
        case _:
            return refusal(error.status, f"{error.reason}.")
