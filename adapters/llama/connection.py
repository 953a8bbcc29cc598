"""HTTP to one llama.cpp server: JSON and event streams in, our errors out."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from yarl import URL

from adapters.http import may_pass, read_body, retry_after
from core.model.errors import ModelUnavailable, PromptTooLong

TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5.0)  # seconds; the rest is each request's deadline
MAX_BODY = 16 * 1024 * 1024  # bytes of one answer, whole or streamed
MAX_REASON = 200  # characters of a server's own words that go into an error
TOO_LONG = ("exceed_context_size_error", "context_length_exceeded")  # the native server's word for it, and OpenAI's


class Refused(ModelUnavailable):
    """The server understood and said no, and would say so again. `reason` is what it said: untrusted text."""

    def __init__(self, message: str, reason: str = "") -> None:  # a copy is made of the message alone
        super().__init__(message)
        self.reason = reason


class TooLong(PromptTooLong):
    """The server counted more tokens than its context has. `reason` is what it said: untrusted text."""

    def __init__(self, message: str, reason: str = "") -> None:  # a copy is made of the message alone
        super().__init__(message)
        self.reason = reason


class LlamaConnection:
    """One server. `host` is what it is called in errors: its address without credentials."""

    def __init__(self, url: str, session: aiohttp.ClientSession, api_key: str = "") -> None:
        """`url` may end in `/v1`; a name and password in it are sent as they are meant, unless there is an API key."""
        address = URL(url.rstrip("/").removesuffix("/v1") + "/")
        self._base = address.with_user(None)
        self._session = session
        # A kept connection may be closed by the server just as it is used again, and no POST is sent twice.
        self._headers = {"Connection": "close"} | _authorization(address, api_key)
        self.host = f"{address.host}:{address.port}"

    async def get(self, path: str) -> dict[str, Any]:
        """The JSON object at `path`. Raises Refused, and ModelUnavailable."""
        async with self._request("GET", path, None) as response:
            return await self._object(response)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that `path` answers `body` with. Raises Refused, PromptTooLong and ModelUnavailable."""
        async with self._request("POST", path, body) as response:
            return await self._object(response)

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The objects of the event stream that `path` answers `body` with, to its mark of the end.

        Closing the iterator closes the connection, which stops the server. Raises what `post` does, also midway.
        """
        async with self._request("POST", path, body) as response:
            async for line in self._lines(response):
                field, _, value = line.partition(b":")
                if field == b"data" and value.strip() == b"[DONE]":
                    return
                if field in {b"data", b"error"}:
                    event = self._parsed(value)
                    if error := event.get("error", event if field == b"error" else None):
                        self._raise(_code(error), json.dumps({"error": error}).encode())
                    yield event
        raise ModelUnavailable(f"The model server at {self.host} broke off in the middle of a reply.")

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(
                method,
                self._base.joinpath(path),
                json=body,
                headers=self._headers,
                timeout=TIMEOUT,
                allow_redirects=False,
            ) as response:
                try:
                    if response.status != 200:
                        self._raise(response.status, await self._body(response), response.headers)
                    yield response
                finally:
                    if not response.content.at_eof():
                        response.close()  # the connection too: so the server notices, and stops
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ModelUnavailable(
                f"The model server at {self.host} cannot be reached: {type(error).__name__}."
            ) from error

    async def _lines(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        begun, size = b"", 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise ModelUnavailable(f"The model server at {self.host} said more than {MAX_BODY} bytes.")
            *lines, begun = (begun + chunk).split(b"\n")
            for line in lines:
                yield line

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        too_large = ModelUnavailable(f"The model server at {self.host} answered with more than {MAX_BODY} bytes.")
        return await read_body(response.content, MAX_BODY, too_large)

    async def _object(self, response: aiohttp.ClientResponse) -> dict[str, Any]:
        return self._parsed(await self._body(response))

    def _parsed(self, body: bytes) -> dict[str, Any]:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ModelUnavailable(f"The model server at {self.host} answered with something but JSON.") from error
        if not isinstance(value, dict):
            raise ModelUnavailable(f"The model server at {self.host} answered with something but a JSON object.")
        return value

    def _raise(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        reason = _reason(body)
        if any(word in reason for word in TOO_LONG):
            message = f"The model server at {self.host} says that the prompt does not fit into its context."
            raise TooLong(message, reason)
        if status in {401, 403}:
            raise ModelUnavailable(f"The model server at {self.host} refuses the API key: set the right one.")
        if may_pass(status) and status != 500:  # with which these servers refuse
            pause = retry_after(headers or {})
            raise ModelUnavailable(
                f"The model server at {self.host} is busy or starting (HTTP status {status}).", pause
            )
        raise Refused(f"The model server at {self.host} refused with HTTP status {status}.", reason)


def _authorization(address: URL, api_key: str) -> dict[str, str]:
    if api_key:
        return {"Authorization": f"Bearer {api_key}"}
    if address.user is not None:
        return {"Authorization": aiohttp.BasicAuth(address.user, address.password or "").encode()}
    return {}


def _reason(body: bytes) -> str:
    """Return the message of a server's error, under whichever key it stands."""
    try:
        error = json.loads(body)["error"]
        return f"{error.get('type')} {error.get('code')} {error.get('message')}"[:MAX_REASON]
    except (ValueError, LookupError, AttributeError, TypeError):
        return body[:MAX_REASON].decode("utf-8", "replace")


def _code(error: object) -> int:
    """The HTTP status code that an error within a stream names."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else 500
