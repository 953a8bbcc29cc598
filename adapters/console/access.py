"""Access control of the local page, its response headers, and posted forms, with limits and clear errors."""

from __future__ import annotations

import hashlib
import hmac
import re
from math import ceil
from urllib.parse import parse_qsl

from aiohttp import web

from adapters.http import read_body
from core.model.conversation import cut_message
from core.model.errors import Forbidden, InputTooLarge, MalformedInput, PlumblineError, Unauthorized
from core.model.running import TokenBuckets, client_key
from core.ports import Clock

COOKIE = "plumbline_console"
SESSION = 12 * 3600  # seconds that a browser stays logged in
MAX_BEGIN_DIGITS = 12
SAFE_METHODS = frozenset({"GET", "HEAD"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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


class TooManyGuesses(PlumblineError):
    """A client sent too many wrong tokens and is blocked for a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many wrong tokens came from this address: try again in {ceil(seconds)} seconds.")
        self.retry_after = ceil(seconds)


class Guard:
    """Grants access with the token; without a token, to everybody whom the application lets through."""

    def __init__(self, token: str | None, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._guesses = TokenBuckets(WRONG_TOKENS_PER_SECOND, WRONG_TOKENS)

    def check_origin(self, request: web.Request) -> None:
        """Raise Forbidden for a request that another site's page made this browser send.

        This follows https://words.filippo.io/csrf: browsers state the origin of a form in Sec-Fetch-Site or Origin. A
        client that states neither is not a browser, unless it sends the cookie; then it is refused.
        """
        if request.method in SAFE_METHODS:
            return
        site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
        ours = (None, f"http://{request.host}", f"https://{request.host}")  # for either scheme of a proxy
        is_ours = site in (None, "same-origin", "none") and origin in ours
        if not is_ours or (site is None and origin is None and COOKIE in request.cookies):
            raise Forbidden("Another site sent this request. Open this page directly and try again.")

    def check_token(self, request: web.Request) -> None:
        """Raise Unauthorized without a valid cookie or `Authorization: Bearer` header, if there is a token.

        Raises TooManyGuesses.
        """
        if self._token is None or self._is_session(request.cookies.get(COOKIE, "")):
            return
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self.knows(request, bearer):
            raise Unauthorized("This page needs the console token. Log in first.")

    def knows(self, request: web.Request, token: str) -> bool:
        """Return whether the token is right. Raises TooManyGuesses, without checking, after too many wrong ones."""
        client, now = client_key(request.remote), self._clock.now()
        if seconds := self._guesses.wait(client, now):
            raise TooManyGuesses(seconds)
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
        if not (begin.isascii() and begin.isdigit() and len(begin) <= MAX_BEGIN_DIGITS):
            return False
        return self._clock.now().timestamp() - int(begin) < SESSION and _equal(cookie, self._session(int(begin)))


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


MAX_BODY = 64 * 1024  # bytes; 4 000 characters of any script have at most 48 000 bytes, percent-encoded
MAX_FIELDS = 10
RESOLVE = "/resolve"  # suffix of a sample incident's name that resolves it
MAX_TEXT = 4_000  # characters of a comment
MAX_PASTE = 1024 * 1024  # bytes of the form with a message, of which `cut_message` keeps the beginning and the end

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_NOT_IN_AN_ADDRESS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


async def read_form(request: web.Request, limit: int = MAX_BODY) -> dict[str, str]:
    """Return the fields of a form of at most `limit` bytes. Raises MalformedInput, InputTooLarge."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise MalformedInput("The local page accepts only forms. Send application/x-www-form-urlencoded.")
    too_large = InputTooLarge(f"The form is over {limit // 1024} KiB: send less text.")
    body = await read_body(request.content, limit, too_large)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError:
        raise MalformedInput("The form cannot be read: it is not UTF-8, or has too many fields.") from None


def question_text(form: dict[str, str]) -> str:
    """Return the text of a form without control characters, and without the middle of a long one. Raises MalformedInput."""
    text = _CONTROL.sub("", form.get("text", "").replace("\r\n", "\n")).strip()
    if not text:
        raise MalformedInput("The message is empty: write a question first.")
    return cut_message(text)


def comment_text(form: dict[str, str], limit: int = MAX_TEXT) -> str:
    """Return the text of a form as `question_text` does, if it has at most `limit` characters. Raises MalformedInput."""
    text = question_text(form)
    if len(text) > limit:
        raise InputTooLarge(f"The message has {len(text)} characters. Shorten it to at most {limit}.")
    return text


def page_of(form: dict[str, str]) -> str:
    """Return the page that contained the form, if it is one of ours; otherwise the first page.

    Raises MalformedInput for a page with control characters: a line end would begin another header, and browsers drop
    tabs, which would make `/<TAB>/elsewhere.example` another site.
    """
    page = form.get("page", "/")
    if _NOT_IN_AN_ADDRESS.search(page):
        raise MalformedInput("The form’s page address contains control characters. Load the page and try again.")
    return page if page.startswith("/") and not page.startswith(("//", "/\\")) else "/"


def see_other(page: str) -> web.Response:
    """Redirect the browser after a form was accepted, so that a reload does not submit it again."""
    return web.Response(status=303, headers={"Location": page})
