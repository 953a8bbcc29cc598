"""The routes of the local page, and the access control for each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from adapters.console.access import HEADERS, Guard, TooManyGuesses, page_of, read_form, see_other
from adapters.console.console import STATIC_TYPES, Console, PageNotFound, Retry, static_files
from adapters.console.conversation import ConversationPage
from adapters.console.operations import AuditLog, DeadLetters, Operations
from core.model.audit import Act
from core.model.errors import Forbidden, InputTooLarge, MalformedInput, PlumblineError, Unauthorized, Unavailable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

STATUS: tuple[tuple[type[PlumblineError], int], ...] = (
    (PageNotFound, 404),
    (Forbidden, 403),
    (Unauthorized, 401),
    (TooManyGuesses, 429),
    (InputTooLarge, 413),
    (MalformedInput, 400),
    (Unavailable, 503),
)
FOREVER = "public, max-age=31536000, immutable"  # a static file's address changes with its content


class ConsolePages:
    """The local page. `token` guards all of it; without one, the application must restrict access to this machine.

    The page is for the operator: the token grants access to every incident, source and prediction, like the database.
    Answers in a channel of the page are limited to that channel's audience, as in any chat. `retry` retries a dead
    letter.
    """

    def __init__(self, console: Console, retry: Retry, token: str | None = None) -> None:
        self._console = console
        self._guard = Guard(token, console.clock)
        self._conversation = ConversationPage(console)
        self._operations = Operations(console)
        self._audit = AuditLog(console)
        self._dead_letters = DeadLetters(console, retry)

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
                web.get("/sources", guarded(self._operations.sources)),
                web.get("/documents/{document_id:.+}", guarded(self._operations.document, Act.VIEWED)),
                web.get("/predictions", guarded(self._operations.predictions, Act.VIEWED)),
                web.get("/audit", guarded(self._audit.show, Act.VIEWED)),
                web.get("/dead-letters", guarded(self._dead_letters.show, Act.VIEWED)),
                web.post("/console/dead-letters", guarded(self._dead_letters.retry, Act.RETRIED)),
                web.get("/console/messages.json", guarded(self._conversation.as_json, Act.EXPORTED)),
                web.get("/console/live", guarded(self._conversation.stream), allow_head=False),
                web.post("/console/messages", guarded(self._conversation.say)),
                web.post("/console/feedback", guarded(self._conversation.judge)),
                web.post("/console/replays", guarded(self._conversation.replay)),
                web.post("/console/login", open_to_all(self._log_in)),
                web.get("/console/static/{name}", open_to_all(self._static)),
            ]
        )
        app.on_shutdown.append(self._disconnect)

    def _guarded(self, handler: Handler, shows: Act | None = None) -> Handler:
        """Wrap a handler that requires the token. Views (`shows`) are recorded before they are sent."""

        async def checked(request: web.Request) -> web.StreamResponse:
            try:
                self._guard.check_token(request)
            except Unauthorized:
                if "Authorization" in request.headers:
                    await self._audit.record(request, Act.REFUSED)
                raise
            response = await handler(request)
            if shows is not None:
                await self._audit.record(request, shows)
            return response

        return self._open_to_all(checked)

    def _open_to_all(self, handler: Handler) -> Handler:
        """Wrap a handler: check the origin, render errors, and set the response headers."""

        async def answered(request: web.Request) -> web.StreamResponse:
            try:
                self._guard.check_origin(request)
                response = await handler(request)
            except PlumblineError as error:
                response = self._refusal(request, error)
            if not response.prepared:
                response.headers.update(HEADERS)
                response.headers.setdefault("Cache-Control", "no-store")
            return response

        return answered

    def _refusal(self, request: web.Request, error: PlumblineError) -> web.Response:
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, TooManyGuesses) else None
        if "HX-Request" in request.headers:
            return web.Response(status=status, text=str(error), headers=headers)  # console.js shows it above the page
        if isinstance(error, Unauthorized):
            html = self._console.renderer.page("login.html", page=request.path_qs, wrong=request.method == "POST")
        else:
            html = self._console.renderer.page("refusal.html", status=status, sentence=str(error))
        return web.Response(status=status, text=html, content_type="text/html", headers=headers)

    async def _log_in(self, request: web.Request) -> web.StreamResponse:
        form = await read_form(request)
        if not self._guard.knows(request, form.get("token", "")):
            await self._audit.record(request, Act.REFUSED)
            raise Unauthorized("The console token is wrong. Enter the value of PLUMBLINE_CONSOLE_TOKEN.")
        response = see_other(page_of(form))
        self._guard.log_in(request, response)
        await self._audit.record(request, Act.LOGGED_IN)
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
