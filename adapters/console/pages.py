"""The routes of the local page, and the access control for each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from aiohttp import web

from adapters.console.console import (
    STATIC_TYPES,
    Console,
    PageNotFound,
    Retry,
    page_of,
    read_form,
    see_other,
    static_files,
)
from adapters.console.screens import ConversationPage, Operations
from adapters.signing_in.guard import HEADERS, HOLDER, VISITOR, Guard, NotBegun, Role
from core.model.audit import Act
from core.model.errors import (
    Forbidden,
    InputTooLarge,
    MalformedInput,
    PlumblineError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

if TYPE_CHECKING:
    from adapters.signing_in.accounts import Accounts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATUS: tuple[tuple[type[PlumblineError], int], ...] = (
    (PageNotFound, 404),
    (Forbidden, 403),
    (Unauthorized, 401),
    (TooManyRequests, 429),
    (InputTooLarge, 413),
    (MalformedInput, 400),
    (Unavailable, 503),
)
SIGN_IN, LOG_IN = "/console/sign-in", "/console/login"
FOREVER = "public, max-age=31536000, immutable"  # a static file's address changes with its content


class ConsolePages:
    """The local page, for people with accounts and those who hold the `token`.

    Without both, the application must restrict access to this machine. The token grants access to every incident, source
    and prediction, like the database; a person sees what the groups of the account may. Answers in a channel of the page
    are limited to that channel's audience, as in any chat. `retry` retries a dead letter.
    """

    def __init__(
        self, console: Console, retry: Retry, token: str | None = None, accounts: Accounts | None = None
    ) -> None:
        self._console = console
        self._accounts = accounts
        self._guard = Guard(token, console.clock, accounts.visitor if accounts is not None else None)
        self._headers = dict(HEADERS)
        if accounts is not None:  # signing out goes on to the provider
            self._headers["Content-Security-Policy"] += f" {accounts.origin}"
        self._conversation = ConversationPage(console, self._guard)
        self._operations = Operations(console, retry)

    def add_routes(self, app: web.Application) -> None:
        """Add all routes, and disconnect open pages when the application shuts down."""
        guarded, open_to_all = self._guarded, self._open_to_all
        app.add_routes(
            [
                web.get("/", guarded(self._conversation.show, Act.VIEWED)),
                web.get("/incidents", guarded(self._operations.incidents, Act.VIEWED)),
                web.get("/incidents/{incident_id}", guarded(self._operations.incident, Act.VIEWED)),
                web.get("/incidents/{incident_id}/postmortem", guarded(self._operations.postmortem, Act.VIEWED)),
                web.get(
                    "/incidents/{incident_id}/postmortem.md", guarded(self._operations.postmortem_file, Act.EXPORTED)
                ),
                web.get("/sources", guarded(self._operations.sources, role="operator")),
                web.get("/documents/{document_id:.+}", guarded(self._operations.document, Act.VIEWED)),
                web.get("/predictions", guarded(self._operations.predictions, Act.VIEWED, "operator")),
                web.get("/audit", guarded(self._operations.audit, Act.VIEWED, "operator")),
                web.get("/dead-letters", guarded(self._operations.dead_letters, Act.VIEWED, "operator")),
                web.post("/console/dead-letters", guarded(self._operations.retry, Act.RETRIED, "operator")),
                web.get("/console/messages.json", guarded(self._conversation.as_json, Act.EXPORTED)),
                web.get("/console/live", guarded(self._conversation.stream), allow_head=False),
                web.post("/console/messages", guarded(self._conversation.say, role="responder")),
                web.post("/console/feedback", guarded(self._conversation.judge, role="responder")),
                web.post("/console/replays", guarded(self._conversation.replay, role="responder")),
                web.post(LOG_IN, open_to_all(self._recorded(self._log_in, Act.LOGGED_IN))),
                web.get("/console/static/{name}", open_to_all(self._static)),
            ]
        )
        if (accounts := self._accounts) is not None:
            complete = self._recorded(accounts.complete, Act.LOGGED_IN)
            app.router.add_get(SIGN_IN, open_to_all(accounts.begin), allow_head=False)
            app.router.add_get("/console/signed-in", open_to_all(complete), allow_head=False)
            app.router.add_post("/console/sign-out", open_to_all(self._recorded(accounts.sign_out, Act.LOGGED_OUT)))
        app.on_shutdown.append(self._disconnect)

    def _guarded(self, handler: Handler, shows: Act | None = None, role: Role = "viewer") -> Handler:
        """Wrap a handler that requires a visitor with this role. Views (`shows`) are recorded before they are sent."""

        async def checked(request: web.Request) -> web.StreamResponse:
            request[VISITOR] = await self._guard.visitor(request)
            if not request[VISITOR].may(role):
                raise Forbidden(f"This needs the role {role}, and yours is {request[VISITOR].role}.")
            return await handler(request)

        return self._open_to_all(self._recorded(checked, shows))

    def _recorded(self, handler: Handler, act: Act | None) -> Handler:
        """Wrap a handler: record its act, or that it was refused to somebody who tried to get in."""

        async def recorded(request: web.Request) -> web.StreamResponse:
            try:
                response = await handler(request)
            except NotBegun:
                raise
            except (Unauthorized, Forbidden) as error:
                if isinstance(error, Forbidden) or act is Act.LOGGED_IN or "Authorization" in request.headers:
                    await self._operations.record(request, Act.REFUSED)
                raise
            if act is not None:
                await self._operations.record(request, act)
            return response

        return recorded

    def _open_to_all(self, handler: Handler) -> Handler:
        """Wrap a handler: check the origin, render errors, and set the response headers."""

        async def answered(request: web.Request) -> web.StreamResponse:
            try:
                self._guard.check_origin(request)
                response = await handler(request)
            except PlumblineError as error:
                response = self._refusal(request, error)
            if not response.prepared:
                response.headers.update(self._headers)
                response.headers.setdefault("Cache-Control", "no-store")
            return response

        return answered

    def _refusal(self, request: web.Request, error: PlumblineError) -> web.Response:
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, TooManyRequests) else {}
        if "HX-Request" in request.headers:
            return web.Response(status=status, text=str(error), headers=headers)  # console.js shows it above the page
        if isinstance(error, Unauthorized):
            is_page = not request.path.startswith("/console/")
            page = request.path_qs if is_page else "/"
            if is_page and self._accounts is not None and self._accounts.has_ended(request):
                return see_other(f"{SIGN_IN}?{urlencode({'page': page})}")
            is_wrong = request.path == LOG_IN
            has_accounts = self._accounts is not None
            response = self._console.page(
                request, "login.html", page=page, sentence=str(error), is_wrong=is_wrong, has_accounts=has_accounts
            )
        else:
            response = self._console.page(request, "refusal.html", status=status, sentence=str(error))
        response.set_status(status)
        response.headers.update(headers)
        return response

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        form = await read_form(request)
        if not self._guard.knows(request, form.get("token", "")):
            raise Unauthorized("The console token is wrong. Enter the value of PLUMBLINE_CONSOLE_TOKEN.")
        response = see_other(page_of(form))
        self._guard.log_in(request, response)
        if self._accounts is not None:
            self._accounts.forget(response)
        request[VISITOR] = HOLDER
        return response

    async def _static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in static_files():
            raise PageNotFound("There is no such file.")
        return web.Response(
            body=static_files()[name],
            content_type=STATIC_TYPES[name[name.rindex(".") :]],
            charset="utf-8",
            headers={"Cache-Control": FOREVER},
        )

    async def _disconnect(self, _app: web.Application) -> None:
        self._console.live.close()
