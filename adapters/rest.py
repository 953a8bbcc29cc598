"""A client of JSON APIs that follows the server's rate limits."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import aiohttp
import structlog
from yarl import URL

from core.model.errors import SourceUnavailable

ATTEMPTS = 7  # per response, before the source counts as unavailable
FIRST_PAUSE = 1.0  # seconds before the second attempt without a Retry-After; doubled each time
LONGEST_PAUSE = (
    120.0  # seconds that a server's Retry-After is followed; whoever asks for more is left until the next run
)
TIMEOUT = aiohttp.ClientTimeout(total=60.0)  # seconds per response
MAX_BODY = 64 * 1024 * 1024  # bytes per response
RETRIED = frozenset({408, 429, 500, 502, 503, 504})  # HTTP status codes of temporary failures

Sleep = Callable[[float], Awaitable[None]]

log = structlog.get_logger()


class TryAgain(SourceUnavailable):
    """A server did not answer, or refused temporarily."""


class Refused(SourceUnavailable):
    """A server refused permanently. `status` is the HTTP status code."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Credentials(Protocol):
    """The credentials of a request."""

    async def header(self) -> str:
        """Return the value of the Authorization header.

        Raises TryAgain, or SourceUnavailable if retrying is useless.
        """
        ...

    def refused(self, header: str) -> bool:
        """Record that the server refused this header. Returns True if a better one may be available."""
        ...


@dataclass(frozen=True, slots=True)
class Token:
    """A fixed Authorization header."""

    value: str

    async def header(self) -> str:
        return self.value

    def refused(self, header: str) -> bool:
        return False


class Rest:
    """A server. Requests are sent one after the other, and to no other server.

    `system` is its name in errors. A caller that cannot wait sets fewer `attempts`, or a shorter `longest_pause`.
    """

    def __init__(
        self,
        system: str,
        url: str,
        credentials: Credentials,
        session: aiohttp.ClientSession,
        sleep: Sleep = asyncio.sleep,
        *,
        attempts: int = ATTEMPTS,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self._system = system
        self._base = URL(url.rstrip("/") + "/")
        self._credentials = credentials
        self._session = session
        self._sleep = sleep
        self._attempts = attempts
        self._longest_pause = longest_pause

    async def get(self, address: str, parameters: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the object at `address`, which is relative to the server's URL or was returned by the server itself.

        Waits as long as the server asks, and retries temporary failures. Raises Refused if the server refuses, and
        SourceUnavailable if there is finally no response.
        """
        url = self._on_this_server(address, parameters)
        header, failures, renewed = "", 0, False
        while True:
            try:
                header = await self._credentials.header()
                return await self._once(url, header)
            except _Unauthorized:
                if renewed or not self._credentials.refused(header):
                    raise
                renewed = True
            except TryAgain as error:
                pause = FIRST_PAUSE * 2**failures if error.retry_after is None else error.retry_after
                failures += 1
                if failures == self._attempts or pause > self._longest_pause:
                    raise
                log.info("source_waits", system=self._system, seconds=pause, reason=str(error))
                await self._sleep(pause)

    def _on_this_server(self, address: str, parameters: Mapping[str, str] | None) -> URL:
        try:
            url = self._base.join(URL(address, encoded=True))
        except ValueError as error:
            raise SourceUnavailable(f"{self._system} gave an address that is none.") from error
        if url.origin() != self._base.origin():
            raise SourceUnavailable(f"{self._system} pointed to another server, {url.host}, which is not asked.")
        return url.update_query(parameters) if parameters else url

    async def _once(self, url: URL, header: str) -> dict[str, Any]:
        headers = {"Authorization": header, "Accept": "application/json"}
        try:
            async with self._session.get(url, headers=headers, timeout=TIMEOUT, allow_redirects=False) as response:
                status, body = response.status, await self._body(response)
                asked = asked_pause(response.headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise TryAgain(f"{self._system} cannot be reached: {error or type(error).__name__}.") from error
        if status in RETRIED:
            raise TryAgain(f"{self._system} answered with HTTP status {status}.", asked)
        if status == 401:
            raise _Unauthorized(f"{self._system} refuses the token: renew it, or set another one.", status)
        if status != 200:
            raise Refused(f"{self._system} answered {url.path} with HTTP status {status}.", status)
        return self._object(body)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                raise SourceUnavailable(f"{self._system} answered with more than {MAX_BODY} bytes.")
        return bytes(body)

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise SourceUnavailable(f"{self._system} answered with something that is not JSON.") from error
        if not isinstance(value, dict):
            raise SourceUnavailable(f"{self._system} answered with something that is no JSON object.")
        return value


def followed(link: str, before: set[str], system: str) -> str:
    """Return the link to the next page, and add it to `before`.

    Raises SourceUnavailable for a link that is already in `before`, because some servers return endless circles.
    """
    if link in before:
        raise SourceUnavailable(f"{system} goes on with a page that it gave before.")
    before.add(link)
    return link


class _Unauthorized(Refused):
    """The token is invalid or expired."""


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, given as a number or as a date by the server's clock."""
    asked = headers.get("Retry-After", "").strip()
    try:
        seconds = float(asked)
    except ValueError:
        return _until(asked, headers.get("Date", ""))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(asked: str, now: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(asked) - parsedate_to_datetime(now)).total_seconds())
    except (ValueError, TypeError):
        return None
