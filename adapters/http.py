"""Reading of other systems: HTTP requests, and records that become typed.

Requests have limits of time and size, heed Retry-After, and map statuses to errors. Records that cannot be made typed are
named. Every client goes through the proxy that the environment names, if it names one (HTTPS_PROXY, HTTP_PROXY, NO_PROXY),
and trusts the authorities of SSL_CERT_FILE. aiohttp, requests (of botbuilder and OpenTelemetry) and qdrant-client read the
environment themselves once it is prepared.
"""

from __future__ import annotations

import asyncio
import html
import json
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ssl import SSLContext
from typing import Annotated, Any, Protocol, TypeVar, cast
from urllib.parse import urlencode
from urllib.request import getproxies, proxy_bypass

import aiohttp
import structlog
from pydantic import (
    AfterValidator,
    AwareDatetime,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import from_json
from yarl import URL

from core.model.errors import ChatUnavailable, NotThere, SourceUnavailable, ToolRefused, ToolUnavailable, Unavailable
from core.model.findings import Gap, GapReason
from core.model.text import json_text
from core.ports import ANSWER_BY, Partial

MAX_WRONG = 160  # characters of what is wrong with a record
EPOCH, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

S = TypeVar("S")
T = TypeVar("T")

_unread: ContextVar[list[Gap] | None] = ContextVar("unread", default=None)


@contextmanager
def unread() -> Iterator[list[Gap]]:
    """Collect the gaps of every list that is made typed within, also in tasks that begin there."""
    gaps = list[Gap]()
    token = _unread.set(gaps)
    try:
        yield gaps
    finally:
        _unread.reset(token)


def typed(records: Iterable[S], made: Callable[[S], T | None]) -> Partial[T]:
    """Return what is made of each record, without None. One gap says how many cannot be made, and why the first cannot.

    The gaps of `records`, and of lists within them, are added.
    """
    every = list(records)
    items, reasons = Partial[T](gaps=gaps_in(records)), list[str]()
    with unread() as inner:
        for record in every:
            before = len(inner)
            try:
                item = made(record)
            except Exception as error:  # noqa: BLE001  # whatever one record does, the others are read
                del inner[before:]  # of lists in a record that is not read at all
                reasons.append(reason_of(error))
            else:
                items += [] if item is None else [item]
    items.gaps += tuple(dict.fromkeys(inner))
    if reasons:
        odd = f"{len(reasons)} of {len(every)} in an unexpected format ({reasons[0]})"
        items.gaps += (Gap("", GapReason.LEFT_OUT, odd),)
    if (outer := _unread.get()) is not None:
        outer += items.gaps
    return items


def gaps_in(items: Iterable[object]) -> tuple[Gap, ...]:
    return items.gaps if isinstance(items, Partial) else ()


def reason_of(error: Exception) -> str:
    """Return what is wrong with a record, on one short line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        text = f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"
    else:
        text = str(error) or type(error).__name__
    return line_of(text[: 4 * MAX_WRONG], MAX_WRONG)


def line_of(text: str, limit: int) -> str:
    """Return a text on one line, of characters that can be shown, which ends with “…” if it is longer than the limit."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _readable(value: object, validate: ValidatorFunctionWrapHandler) -> list[Any]:
    if not isinstance(value, list):
        return [] if value is None else validate(value)
    items = typed(value, lambda each: validate([each])[0])
    if value and not items:
        raise ValueError(items.gaps[-1].detail)
    return items


Items = Annotated[list[T], WrapValidator(_readable)]
"""The valid items of a list in an answer: Partial if others are not. Servers also write null for an empty list."""


def in_utc(at: datetime) -> datetime:
    """Return a time in UTC. Raises ValueError for one without a zone, and for one up to 1970, which stands for no time."""
    if at.tzinfo is None or not EPOCH < at < LAST:
        raise ValueError(f"{at.isoformat()!r} is not a time")
    return at.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(in_utc)]
"""A time of a record, in UTC."""


def json_in(body: bytes) -> Any:
    """Return the JSON in an answer, with a mark in place of half a character. Raises ValueError."""
    try:
        return from_json(body)
    except ValueError:
        return from_json(json_text(body))


# Never asked through a proxy: this machine, and the service of a cloud that knows the machine.
NEAR = ("localhost", "127.0.0.1", "::1", "169.254.169.254")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Exempt what is near from the proxies of the environment, and let no client add credentials from ~/.netrc."""
    exempt = (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(",")
    environment["NO_PROXY"] = environment["no_proxy"] = ",".join(filter(None, dict.fromkeys((*exempt, *NEAR))))
    environment["NETRC"] = os.devnull


def client_session(**options: Any) -> aiohttp.ClientSession:
    """Return a session that uses the proxies of the environment. `options` go to aiohttp."""
    return aiohttp.ClientSession(trust_env=True, **options)


def proxy_for(url: str) -> str | None:
    """Return the proxy for a URL, for clients that do not look for it or know no exemptions; None for the direct way."""
    address = URL(url)
    near = address.host is None or proxy_bypass(address.host)
    return None if near else getproxies().get(address.scheme)


MAX_BODY = 64 * 1024 * 1024  # bytes of one answer
REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAY_PASS = frozenset({408, 412, 425, 429})  # HTTP status codes, besides 5xx, of failures that may be temporary
MAX_REFUSAL = 64 * 1024  # bytes of a refusal in which its reason is looked for
MAX_REASON = 300  # characters of the reason to show
REASONS = ("message", "error", "error_description", "errorMessages", "errors", "title", "detail")
"""Fields of refusals that say why, from Prometheus, Kubernetes, GitHub, GitLab, Azure, Atlassian, PagerDuty, RFC 9457."""
NOT_IMPLEMENTED = 501  # the one 5xx that is permanent
_PAGE = re.compile(rb"\s*+(?:<!doctype html|<html)\b(?:[^<]|<(?!title\b))*+(?:<title[^<>]*+>([^<]*+))?", re.IGNORECASE)
"""Matches the beginning of a web page, with its title."""
EPOCH_FROM = 10**8  # a smaller number in X-RateLimit-Reset counts seconds from now, a larger one since 1970
_LIMIT_CODE = re.compile(
    r"(?:\"(?:__type|type|code|errorCode|error|reason|status)\"\s{0,9}:\s{0,9}\"|<Code>)[\w.#:/-]{0,80}?"
    r"(?:Throttl|Too_?Many|Rate_?Limit|RequestLimit|SlowDown|Resource_?Exhausted)",
    re.IGNORECASE,
)
"""A code of the refusals of AWS (JSON and XML), Azure, Google and others."""

_LIMIT_REASON = re.compile(r"rate[ -]?limit|throttl|too many requests|request limit|rate exceeded", re.IGNORECASE)

_OBJECT, OBJECTS = TypeAdapter(dict[str, Any]), TypeAdapter(list[dict[str, Any]])
_JSON = {"Content-Type": "application/json"}

log = structlog.get_logger()


class TryAgain(SourceUnavailable):
    """A server did not answer, or asked to wait. A retry after a pause may succeed."""


class Refused(SourceUnavailable):
    """A server refused the request or gave an unusable answer, and would do so again.

    `status` is the HTTP status code; 0 if the content of the answer was at fault.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Gone(Refused):
    """The thing that was asked for does not exist, was deleted, or is hidden from us (status 404 or 410)."""


def _refused(message: str, status: int) -> Refused:
    return (Gone if status in (404, 410) else Refused)(message, status)


@dataclass(frozen=True, slots=True)
class Errors:
    """The error types for the failures of one kind of system.

    `later` is raised for no answer or a temporary failure, `denied` for 401 and 403, and `refused` for
    every other status but 200 and 201, and for an answer that cannot be used.
    """

    later: type[Unavailable]
    denied: Callable[[str, int], Unavailable]
    refused: Callable[[str, int], Unavailable]


SOURCE = Errors(TryAgain, Refused, _refused)
CHAT = Errors(ChatUnavailable, lambda message, _: ChatUnavailable(message), lambda message, _: ChatUnavailable(message))
TOOL = Errors(
    ToolUnavailable,
    lambda message, _: ToolRefused(message),
    lambda message, status: (NotThere if status in (404, 410) else ToolUnavailable)(message),
)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of any status, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after(self) -> float | None:
        return retry_after(self.headers)

    @property
    def is_limited(self) -> bool:
        """Return whether the server refuses a request because there were too many: with 429, or with 400, 403 or 503.

        Of these, a code says so; with 403 and 503 also words, which with 400 may quote the request; with 403 also a header.
        """
        if self.status not in (400, 403, 503):
            return self.status == 429
        if _LIMIT_CODE.search(self.body[:MAX_REFUSAL].decode("utf-8", "replace")):
            return True
        if self.status == 403 and (self.retry_after is not None or _is_used_up(self.headers)):
            return True
        return self.status != 400 and bool(_LIMIT_REASON.search(reason_in(self.body)))

    @property
    def may_pass(self) -> bool:
        """Return whether the request may succeed later."""
        return may_pass(self.status) or self.is_limited


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of attempts for one answer, and the pauses between them.

    A pause is the one that the server asks for, else `first_pause` seconds, twice as long each time. A server that
    asks for more than `longest_pause` seconds, or for more than is left to a reader, is not asked again.
    """

    attempts: int = 7
    first_pause: float = 1.0
    longest_pause: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause(self, failures: int, wish: float | None, *, least: int = 1) -> float | None:
        """Return the seconds to wait after this many failed attempts; None to give up, after `least` of them at least."""
        pause = self.first_pause * 2 ** (failures - 1) if wish is None else wish
        return pause if failures < max(self.attempts, least) and pause <= self.longest_pause else None


ONCE = Retries(attempts=1)


class Credentials(Protocol):
    """The credentials of a request."""

    async def header(self) -> str:
        """Return the value of the Authorization header, empty for none. Raises Unavailable."""
        ...

    def refused(self, header: str) -> bool:
        """Take note that the server refused this header; return whether there may be a better one now."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """A fixed Authorization header."""

    value: str = ""

    async def header(self) -> str:
        return self.value

    def refused(self, header: str) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """An access token, and its lifetime in seconds."""

    value: str
    lifetime: float


class RenewedToken:
    """A bearer token that is requested when first needed, `early` seconds before its end, and when it was refused.

    `issue` raises Unavailable.
    """

    def __init__(self, issue: Callable[[], Awaitable[IssuedToken]], early: float) -> None:
        self._issue = issue
        self._early = early
        self._token = ""
        self._renew_at = 0.0
        self._requesting = asyncio.Lock()

    async def get(self) -> str:
        """Return the token. Raises the errors of `issue`."""
        async with self._requesting:
            if not self._token or time.monotonic() >= self._renew_at:
                issued = await self._issue()
                self._token, self._renew_at = issued.value, time.monotonic() + max(0.0, issued.lifetime - self._early)
            return self._token

    async def header(self) -> str:
        return f"Bearer {await self.get()}"

    def refused(self, header: str) -> bool:
        """Discard the refused token. Returns True, because a new one may be accepted."""
        if header == f"Bearer {self._token}":
            self._token = ""
        return True


# The method, address, headers and body of a request → its headers with those of a signature, which proves who asks.
Sign = Callable[[str, URL, Mapping[str, str], bytes], dict[str, str]]


def basic(user: str, password: str) -> Token:
    """Return the header of HTTP basic authentication (RFC 7617)."""
    return Token(aiohttp.encode_basic_auth(user, password))


@dataclass(frozen=True, slots=True)
class Http:
    """A client of one server, which errors call `system`.

    It sends nothing to other servers, except that it follows one redirect to a host in `elsewhere`, without headers. A
    host without a port means the scheme's default port. `secrets` are left out of what a refusal says. Every method
    raises the types in `errors`.
    """

    system: str
    url: str
    session: aiohttp.ClientSession
    credentials: Credentials = Token()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: SSLContext | bool = True
    elsewhere: frozenset[str] = frozenset()
    errors: Errors = TOOL
    retries: Retries = ONCE
    timeout: float = 6.0  # seconds for one answer
    max_body: int = 16 * 1024 * 1024  # bytes of one answer
    sign: Sign | None = None
    secrets: frozenset[str] = frozenset()

    async def get(self, address: str, parameters: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at `address`: a path relative to the server's URL, or a URL from the server itself."""
        return await self.parsed(address, _OBJECT, parameters)

    def listed(self, answer: Mapping[str, Any], name: str, kind: TypeAdapter[list[T]]) -> list[T]:
        """Return a list in an answer. Raises `errors.refused` for anything else."""
        try:
            return kind.validate_python(answer.get(name))
        except ValidationError as error:
            problem = f"`{name}` holds something else ({reason_of(error)})"
            raise self.errors.refused(self.unexpected(b"", reason=problem), 0) from error

    async def parsed(
        self,
        address: str,
        kind: TypeAdapter[T],
        parameters: Mapping[str, str] | None = None,
        *,
        form: Mapping[str, str] | None = None,
        value: object = None,
    ) -> T:
        """Return the JSON at `address`. A `form`, or a `value` as JSON, is posted there."""
        answer = await self.answer(address, parameters, form=form, value=value)
        return self._typed(kind, answer.body, address.partition("?")[0])

    async def text(self, address: str, parameters: Mapping[str, str] | None = None, *, last: int = MAX_BODY) -> str:
        """Return the last `last` bytes at `address` as text. A web page is none: a proxy asks to sign in."""
        body = await self.body(address, parameters)
        if _PAGE.match(body):
            raise self.errors.refused(self.unexpected(body, address.partition("?")[0]), 0)
        return body[-last:].decode("utf-8", "replace")

    async def body(
        self,
        address: str,
        parameters: Mapping[str, str] | None = None,
        *,
        form: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the bytes at `address`, with retries as in `retries`."""
        return (await self.answer(address, parameters, form=form)).body

    async def answer(
        self,
        address: str,
        parameters: Mapping[str, str] | None = None,
        *,
        form: Mapping[str, str] | None = None,
        value: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        """Return the answer with status 200 or 201 at `address`, with retries as in `retries`.

        A reader with a deadline waits for a rate limit once, even without retries.
        A `form`, or a `value` as JSON, is posted; `headers` are added to those of the server.
        """
        url, content = self._on_this_server(address, parameters), _content(form, value)
        header, failures, renewed = "", 0, False
        while True:
            answer = None
            try:
                header = await self.credentials.header()
                answer = await self._ask(url, header, content, headers or {})
                if answer.status == 401 and not renewed and self.credentials.refused(header):
                    renewed = True
                    continue
                return self._accepted(url, answer, header)
            except self.errors.later as error:
                failures += 1
                left = ANSWER_BY.get() - asyncio.get_running_loop().time()
                is_limit = answer is not None and answer.is_limited and left < math.inf
                pause = self.retries.pause(failures, error.retry_after, least=2 if is_limit else 1)
                if pause is None or pause >= left:
                    raise
                log.info("http_retry", system=self.system, seconds=pause, reason=str(error))
                await self.retries.sleep(pause)

    async def send(self, method: str, address: str, value: Mapping[str, Any], kind: TypeAdapter[T]) -> T:
        """Send JSON and return the answer, without retries: a server that fails may still have stored it."""
        url, header = self._on_this_server(address, None), await self.credentials.header()
        answer = await self._exchange(method, url, self._headers(header, _JSON), json.dumps(value).encode())
        return self._typed(kind, self._accepted(url, answer, header).body, url.path)

    def unexpected(self, body: bytes, path: str = "", reason: str = "") -> str:
        """Return the sentence that an answer has an unexpected format, with what it says instead, or else the `reason`."""
        words = _page_in(body) or reason_in(body, "", self.secrets) or reason
        instead = f": {words.rstrip('.')}" if words else ""
        return f"{self.system} answered{f' {path}' if path else ''} in an unexpected format{instead}."

    def _typed(self, kind: TypeAdapter[T], body: bytes, path: str) -> T:
        try:
            return kind.validate_python(json_in(body))
        except ValueError as error:
            raise self.errors.refused(self.unexpected(body, path), 0) from error

    async def _ask(
        self, url: URL, header: str, content: tuple[Mapping[str, str], bytes] | None, more: Mapping[str, str]
    ) -> HttpAnswer:
        kind, body = content or ({}, b"")
        method = "GET" if content is None else "POST"
        headers = self._headers(header, {**kind, **more})
        signed = headers if self.sign is None else self.sign(method, url, headers, body)
        answer = await self._exchange(method, url, signed, body)
        if answer.status in REDIRECTS:
            return await self._exchange("GET", self._redirected(url, answer.headers.get("Location", "")), {}, b"")
        return answer

    def _headers(self, header: str, more: Mapping[str, str]) -> dict[str, str]:
        own = {"Accept": "application/json", **self.headers, **more}
        return own | {"Authorization": header} if header else own

    async def _exchange(self, method: str, url: URL, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        return await exchange(
            self.session,
            method,
            url,
            system=self.system,
            errors=self.errors,
            seconds=self.timeout,
            max_body=self.max_body,
            headers=headers,
            ssl=self.tls,
            data=body or None,
        )

    def _accepted(self, url: URL, answer: HttpAnswer, header: str) -> HttpAnswer:
        """Return an answer with status 200 or 201; raise the matching error for any other status."""
        status = answer.status
        if status in (200, 201):
            return answer
        outcome = f"HTTP status {status}"
        if reason := reason_in(answer.body, header, self.secrets):
            outcome = f"{outcome}: {reason}"
        if answer.may_pass:
            limit = f"{self.system} has reached its rate limit ({outcome})."
            problem = limit if answer.is_limited else f"{self.system} answered with {outcome}."
            raise self.errors.later(problem, answer.retry_after)
        if status in {401, 403}:
            problem = f"{self.system} refuses the token for {url.path} ({outcome}): renew it or give it rights."
            raise self.errors.denied(problem, status)
        raise self.errors.refused(f"{self.system} answered {url.path} with {outcome}.", status)

    def _on_this_server(self, address: str, parameters: Mapping[str, str] | None) -> URL:
        base = URL(self.url.rstrip("/") + "/")
        try:
            url = base.join(URL(address, encoded=True))
            is_ours = url.origin() == base.origin()
        except ValueError as error:
            raise self.errors.refused(f"{self.system} returned an invalid URL.", 0) from error
        if not is_ours:
            raise self.errors.refused(
                f"{self.system} returned a link to another server, {url.host}, which Plumbline does not call.", 0
            )
        return url.update_query(parameters) if parameters else url

    def _redirected(self, url: URL, location: str) -> URL:
        try:
            target = url.join(URL(location, encoded=True))
            named = f"{target.host}" if target.is_default_port() else f"{target.host}:{target.port}"
        except ValueError as error:
            raise self.errors.refused(f"{self.system} redirects to an invalid URL.", 0) from error
        if named not in self.elsewhere or target.scheme != url.scheme:
            raise self.errors.refused(
                f"{self.system} redirects to {named}, which is not configured, so Plumbline does not follow it.", 0
            )
        return target


def _content(form: Mapping[str, str] | None, value: object) -> tuple[Mapping[str, str], bytes] | None:
    """Return the headers and the bytes of what is posted; None to get."""
    if form is not None:
        return {"Content-Type": "application/x-www-form-urlencoded"}, urlencode(form).encode()
    return None if value is None else (_JSON, json.dumps(value).encode())


def reason_in(body: bytes, header: str = "", secrets: Iterable[str] = ()) -> str:
    """Return the reason that a refusal gives, on one line and without the credentials; empty if it gives none."""
    text = body[:MAX_REFUSAL].decode("utf-8", "replace").strip("\ufeff \t\r\n")
    if text.startswith("<") or "\ufffd" in text:  # a page, or no text
        return ""
    try:
        text = _reason(from_json(text))
    except ValueError:
        text = "" if text.startswith(("{", "[")) else text
    for secret in filter(None, (header.rpartition(" ")[2], *secrets)):
        text = text.replace(secret, "…")
    return line_of(text, MAX_REASON).rstrip(".")


def _page_in(body: bytes) -> str:
    """Return “a web page, “Sign in””; empty for other bodies."""
    page = _PAGE.match(body)
    if page is None:
        return ""
    title = line_of(html.unescape((page[1] or b"")[:MAX_REASON].decode("utf-8", "replace")), MAX_REASON)
    return f"a web page, “{title}”" if title else "a web page"


def _reason(value: Any) -> str:
    """Return the texts in a refusal that say why."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(_reason, cast("list[Any]", value))))
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        texts = [_reason(given.get(name)) or _of_fields(given.get(name)) for name in REASONS]
        return ": ".join(dict.fromkeys(filter(None, texts))) or _reason(given.get("reason"))
    return value if isinstance(value, str) else ""


def _of_fields(value: Any) -> str:
    """Return the problem of each field, as Jira and GitLab give it, by name."""
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return "; ".join(f"{name}: {problem}" for name, each in given.items() if (problem := _reason(each)))


PATIENT = Retries()


def source_server(
    system: str, url: str, session: aiohttp.ClientSession, credentials: Credentials, retries: Retries = PATIENT
) -> Http:
    """Return the client of a knowledge source's server, with a long timeout and many retries."""
    return Http(system, url, session, credentials, errors=SOURCE, retries=retries, timeout=60.0, max_body=MAX_BODY)


async def exchange(
    session: aiohttp.ClientSession,
    method: str,
    url: URL | str,
    *,
    system: str,
    errors: Errors,
    seconds: float,
    max_body: int = MAX_BODY,
    **options: Any,
) -> HttpAnswer:
    """Send one request and return its answer, whatever the status, within `seconds` and `max_body` bytes.

    Raises `errors.later` if there is no answer, and `errors.refused` if it is too large. Redirects are not followed.
    `options` go to aiohttp.
    """
    limit = aiohttp.ClientTimeout(total=seconds)
    try:
        async with session.request(method, url, timeout=limit, allow_redirects=False, **options) as response:
            too_large = errors.refused(f"{system} answered with more than {max_body} bytes.", 0)
            return HttpAnswer(response.status, response.headers, await read_body(response.content, max_body, too_large))
    except (aiohttp.ClientError, TimeoutError) as error:
        raise errors.later(f"{system} cannot be reached: {str(error) or type(error).__name__}.") from error


async def read_body(content: aiohttp.StreamReader, limit: int, too_large: Exception) -> bytes:
    """Return the whole body of a request or an answer. Raises `too_large` as soon as it exceeds `limit` bytes."""
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


def may_pass(status: int) -> bool:
    """Return whether a request that was answered with this HTTP status code may succeed later."""
    return status in MAY_PASS or (status >= 500 and status != NOT_IMPLEMENTED)


def retry_after(headers: Mapping[str, Any]) -> float | None:
    """Return the seconds of a Retry-After header, which holds a number or a date (RFC 9110, section 10.2.3).

    Without it, they are those until a rate limit that is used up is reset. Returns None if there is neither, or for an
    invalid value. A date is compared with the server's Date header if there is one. Values may be lists, as in the
    headers of slack_sdk.
    """
    by_name = {
        name.lower(): value[0] if isinstance(value, list) and value else value for name, value in headers.items()
    }
    resets = [value for name, value in by_name.items() if "ratelimit-reset" in name and _is_used_up(by_name)]
    text = str(by_name.get("retry-after") or next(iter(resets), "")).strip()
    try:
        seconds = float(text)
    except ValueError:
        return _until(text, str(by_name.get("date", "")))
    seconds -= time.time() if seconds >= EPOCH_FROM else 0.0
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _is_used_up(headers: Mapping[str, Any]) -> bool:
    """Return whether no request is left, for example by X-RateLimit-Remaining or x-ms-ratelimit-remaining-…."""
    return any("ratelimit-remaining" in name.lower() and str(value).strip() == "0" for name, value in headers.items())


def _until(until: str, now: str) -> float | None:
    try:
        began = parsedate_to_datetime(now) if now else datetime.now(UTC)
        at = datetime.fromisoformat(until) if until[:4].isdecimal() else parsedate_to_datetime(until)
        return max(0.0, (at - began).total_seconds())
    except (ValueError, TypeError):
        return None


def followed(link: str, before: set[str], system: str) -> str:
    """Return `link`, the link to the next page, and add it to the links that were followed `before`.

    Raises SourceUnavailable if it is among them: the pages of some servers form a loop.
    """
    if link in before:
        raise SourceUnavailable(f"{system} returned the same page twice.")
    before.add(link)
    return link
