"""All inbound routes: verify, parse, record and acknowledge. The work is done after the response."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from adapters.chat import CHATS, DOCTOR
from adapters.protected_resource import PATH as MCP
from adapters.protected_resource import WELL_KNOWN
from bot import telemetry
from bot.tracing import request_span
from bot.web.inbound_limits import (
    BodyTooSlow,
    Handler,
    InboundLimits,
    NotFromThisMachine,
    Refusals,
    bound_waiting,
    check_direct,
    keep_local,
)
from bot.web.webhook_sources import WebhookSource
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
from core.model.text import counted
from core.ports import Clock

if TYPE_CHECKING:
    from adapters.agents import AgentEndpoint

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

log = structlog.get_logger()


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
                "The webhook secret is missing or wrong: send PLUMBLINE_WEBHOOK_SECRET as bearer token.", CHALLENGE
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
