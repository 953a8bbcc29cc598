"""`/mcp`: Plumbline's MCP server over streamable HTTP, stateless, with a bearer token for each caller."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from mcp.server.transport_security import TransportSecuritySettings

from adapters.agents.protected_resource import PATH, ProtectedResource
from adapters.agents.server import agent_server
from adapters.http import read_body
from adapters.section import is_loopback
from core.model.errors import Forbidden, InputTooLarge, PlumblineError, TooManyRequests, Unauthorized
from core.model.lenient_formats import load_json
from core.model.rate_limit import TokenBuckets, client_key
from core.ports import AgentCaller, AgentTools, Clock

CALLS = 30  # requests that a caller may send in a burst
CALLS_PER_SECOND = 1.0  # sustained rate per caller
REFUSALS = 30  # refused requests without a valid token that are recorded in a burst, per client
REFUSALS_PER_SECOND = 0.1  # sustained; the metrics count all of them
MAX_BODY = 256 * 1024  # bytes of a request

MAX_ORIGIN = 200  # characters that are repeated

REASONS: dict[type[PlumblineError], str] = {
    Forbidden: "foreign origin",
    InputTooLarge: "too large",
    TooManyRequests: "too many",
    Unauthorized: "wrong token",
}
UNREADABLE = "unreadable"  # for example, the body did not arrive in time

FIRST_ERROR = 400  # of the status codes of HTTP

# The token is what protects this address; a browser cannot send it for another site.
_ANY_HOST = TransportSecuritySettings(enable_dns_rebinding_protection=False)


class AgentEndpoint:
    """Hands each request to the MCP server of the caller whose token it carries."""

    def __init__(
        self, tools: AgentTools, callers: Mapping[str, AgentCaller], clock: Clock, resource: ProtectedResource
    ) -> None:
        """Create the endpoint. `callers` is keyed by token."""
        self.resource = resource
        self._tools = tools
        self._callers = callers
        self._clock = clock
        self._calls = TokenBuckets(CALLS_PER_SECOND, CALLS)
        self._refusals = TokenBuckets(REFUSALS_PER_SECOND, REFUSALS)
        self._apps = {
            token: agent_server(tools, caller).streamable_http_app(
                json_response=True, stateless_http=True, max_request_body_size=MAX_BODY, transport_security=_ANY_HOST
            )
            for token, caller in callers.items()
        }

    async def start(self, stack: AsyncExitStack) -> None:
        """Serve until the stack is closed."""
        started, over = asyncio.Event(), asyncio.Event()

        async def serve() -> None:  # a separate task, because the task that enters a task group must also leave it
            async with AsyncExitStack() as running:
                for app in self._apps.values():
                    await running.enter_async_context(app.router.lifespan_context(app))
                started.set()
                await over.wait()

        serving = asyncio.create_task(serve())

        async def stop() -> None:
            over.set()
            await serving

        stack.push_async_callback(stop)
        await started.wait()

    async def handle(self, request: web.Request) -> web.Response:
        """Answer a request.

        Raises Unauthorized without a valid token, Forbidden if the page of another site sent it, TooManyRequests if a
        caller sends too many, InputTooLarge, and the errors of reading the body. What is refused is recorded before it is
        answered. The tools record the other calls.
        """
        caller = f"unknown:{client_key(request.remote)}"
        try:
            self._check_origin(request)
            token = self._token_of(request)
            caller = self._callers[token].name
            reply = await self._reply(request, token)
        except PlumblineError as error:
            if not self._refusals.take(caller, self._clock.now()):
                await self._tools.refuse(caller, REASONS.get(type(error), UNREADABLE))
            raise
        if reply.status >= FIRST_ERROR or is_error(bytes(reply.body)):
            await self._tools.refuse(self._callers[token].name, "malformed")
        return web.Response(body=bytes(reply.body), status=reply.status, headers=reply.headers)

    def _check_origin(self, request: web.Request) -> None:
        """Raise Forbidden for a request that the page of another site sent. Only browsers name an origin."""
        origin = request.headers.get("Origin")
        if origin is not None and origin != self.resource.origin and not is_loopback(origin):
            raise Forbidden(f"The origin {origin[:MAX_ORIGIN]} may not call this address.")

    async def _reply(self, request: web.Request, token: str) -> _Reply:
        if seconds := self._calls.take(self._callers[token].name, self._clock.now()):
            raise TooManyRequests("Too many requests came from this caller.", seconds)
        too_large = InputTooLarge(f"The body is larger than {MAX_BODY // 1024} KiB. Send less at once.")
        body = await read_body(request.content, MAX_BODY, too_large)
        reply = _Reply()
        await self._apps[token](_scope(request), _receiver(body), reply.send)
        return reply

    def _token_of(self, request: web.Request) -> str:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        shown = given.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else b""
        # Compare with every token, so that the response time does not reveal a partial match.
        tokens = [token for token in self._callers if hmac.compare_digest(token.encode(), shown)]
        if not tokens:
            challenge = self.resource.challenge(wrong_token=bool(shown))
            raise Unauthorized("The MCP token is missing or wrong. Send it as a bearer token.", challenge)
        return tokens[0]


def is_error(body: bytes) -> bool:
    """Return whether a reply of JSON-RPC is an error. The server records the results of tools that failed."""
    reply = load_json(body) if body else None
    return isinstance(reply, dict) and "error" in reply


class _Reply:
    """The response of an ASGI application, collected."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: dict[str, str] = {}
        self.body = bytearray()

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in message.get("headers", ())
                if name.lower() != b"content-length"
            }
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def _scope(request: web.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.raw_headers],
        "client": (request.remote or "", 0),
        "server": None,
    }


def _receiver(body: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()  # a caller that went away is noticed by the server, which cancels the handler
        return messages.pop()

    return receive
