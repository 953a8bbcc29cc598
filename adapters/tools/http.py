"""An HTTP client for one monitoring system, limited in time and size, and restricted to one host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TypeVar

import aiohttp
from pydantic import TypeAdapter, ValidationError
from yarl import URL

from core.model.errors import ToolRefused, ToolUnavailable

TIMEOUT = aiohttp.ClientTimeout(total=6.0)  # seconds per response
MAX_BODY = 16 * 1024 * 1024  # bytes per response
REDIRECTS = frozenset({301, 302, 303, 307, 308})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Http:
    """A server, called `system` in errors. One redirect is followed, and only to one of the hosts in `elsewhere`.

    A host without a port means the default port of the scheme. Other hosts do not receive the headers. Raises
    ToolUnavailable for any response other than status 200.
    """

    system: str
    url: str
    session: aiohttp.ClientSession
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: SSLContext | bool = True
    elsewhere: frozenset[str] = frozenset()

    async def parsed(self, path: str, kind: TypeAdapter[T], parameters: Mapping[str, str] | None = None) -> T:
        """Return the JSON at `path`, which is appended to the server's address and must be quoted."""
        body = await self.body(path, parameters)
        try:
            return kind.validate_json(body)
        except ValidationError as error:
            raise ToolUnavailable(f"{self.system} did not answer {path.partition('?')[0]} as documented.") from error

    async def text(self, path: str, parameters: Mapping[str, str] | None = None, *, last: int = MAX_BODY) -> str:
        """Return the last bytes at `path` as text."""
        return (await self.body(path, parameters))[-last:].decode("utf-8", "replace")

    async def body(self, path: str, parameters: Mapping[str, str] | None = None) -> bytes:
        url = URL(f"{self.url.rstrip('/')}/{path.lstrip('/')}", encoded=True)
        status, body, location = await self._get(url.update_query(parameters or {}), self.headers)
        if status in REDIRECTS:
            status, body, _ = await self._get(self._allowed(url, location), {})
        if status in {401, 403}:
            raise ToolRefused(f"{self.system} refuses the token (HTTP status {status}): renew it or give it rights.")
        if status != 200:
            raise ToolUnavailable(f"{self.system} answered with HTTP status {status}.")
        return body

    def _allowed(self, url: URL, location: str) -> URL:
        try:
            target = url.join(URL(location, encoded=True))
        except ValueError as error:
            raise ToolUnavailable(f"{self.system} redirects to an address that is none.") from error
        named = f"{target.host}" if target.is_default_port() else f"{target.host}:{target.port}"
        if named not in self.elsewhere or target.scheme != url.scheme:
            raise ToolUnavailable(f"{self.system} redirects to {named}, which is not configured and not asked.")
        return target

    async def _get(self, url: URL, headers: Mapping[str, str]) -> tuple[int, bytes, str]:
        try:
            async with self.session.get(
                url, headers=headers, timeout=TIMEOUT, allow_redirects=False, ssl=self.tls
            ) as response:
                body = bytearray()
                async for chunk in response.content.iter_any():
                    body += chunk
                    if len(body) > MAX_BODY:
                        raise ToolUnavailable(f"{self.system} answered with more than {MAX_BODY} bytes.")
                return response.status, bytes(body), response.headers.get("Location", "")
        except (aiohttp.ClientError, TimeoutError) as error:
            problem = str(error) or type(error).__name__
            raise ToolUnavailable(f"{self.system} cannot be reached: {problem}.") from error
