"""HTTP access to a language model server: JSON, event streams, and translated errors."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from yarl import URL

from adapters.http import may_pass, read_body, retry_after
from core.model.errors import ModelUnavailable, PromptTooLong

TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5.0)  # seconds; otherwise each request's deadline applies
MAX_BODY = 16 * 1024 * 1024  # bytes of one response, whole or streamed
MAX_REASON = 200  # characters of a server's message in an error
TOO_LONG = (  # error codes and words
    "exceed_context_size_error",  # llama-server
    "context_length_exceeded",  # OpenAI, llama_cpp.server
    "maximum context length",  # vLLM, SGLang
    "context length of only",  # LM Studio
    "ContextWindowExceeded",  # LiteLLM
)


class _Reasoned(Exception):
    """`reason` is the server's message: untrusted text."""

    def __init__(self, message: str, reason: str = "") -> None:  # a copy is made of the message alone
        super().__init__(message)
        self.reason = reason


class RequestRefused(_Reasoned, ModelUnavailable):
    """The server permanently refused a request."""


class ReplyFailed(RequestRefused):
    """The server gave up a reply that it had begun."""


class Unclear(ModelUnavailable):
    """The server answered with something other than a JSON object."""


class Denied(ModelUnavailable):
    """The server refuses the API key, or has no such address for it."""


class TooMany(ModelUnavailable):
    """The server limits the number of requests. It is the same server as before."""


class TooLong(_Reasoned, PromptTooLong):
    """The prompt exceeds the server's context."""


class LlamaConnection:
    """A server. `host` is its name in errors: its address without credentials."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, api_key: str = "", setting: str = "PLUMBLINE_LLM_API_KEY"
    ) -> None:
        """Create the connection. `url` may end in `/v1`; credentials in it are sent, unless there is an API key.

        `setting` is the environment variable of the key.
        """
        address = URL(url.rstrip("/").removesuffix("/v1") + "/")
        self._base = address.with_user(None)
        self._session = session
        # The server may close a kept-alive connection while it is reused, and a POST is not sent twice.
        self._headers = {"Connection": "close"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        elif address.user is not None:
            self._headers["Authorization"] = aiohttp.BasicAuth(address.user, address.password or "").encode()
        self._setting = setting
        self.host = f"{address.host}:{address.port}"

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return the JSON object at `path`. Raises Refused, and ModelUnavailable."""
        async with self._request("GET", path, None, query) as response:
            return await self._object(response)

    async def check(self, path: str) -> None:
        """Raise Refused or ModelUnavailable if the server does not answer at `path`."""
        async with self._request("GET", path, None):
            pass

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post `body` to `path` and return the JSON object. Raises Refused, PromptTooLong and ModelUnavailable."""
        async with self._request("POST", path, body) as response:
            return await self._object(response)

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """Yield the objects of the event stream at `path`, until its end mark.

        Closing the iterator closes the connection, which stops the generation. Raises the errors of `post`, also
        midway.
        """
        async with self._request("POST", path, body) as response:
            async for line in self._lines(response):
                field, _, value = line.partition(b":")
                if field == b"data" and value.strip() == b"[DONE]":
                    return
                if field in {b"data", b"error"}:
                    event = self._parsed(value)
                    if error := event.get("error", event if field == b"error" else None):
                        status = error.get("code") if isinstance(error, dict) else None
                        reason = json.dumps({"error": error}).encode()
                        self._raise(status if isinstance(status, int) else 500, reason, kind=ReplyFailed)
                    yield event
        raise ModelUnavailable(f"The model server at {self.host} stopped in the middle of a reply.")

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(
                method,
                self._base.joinpath(path).with_query(query),
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
                        response.close()  # closes the connection, so that the server stops
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ModelUnavailable(
                f"The model server at {self.host} cannot be reached: {type(error).__name__}."
            ) from error

    async def _lines(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        begun, size = b"", 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_BODY:
                raise ModelUnavailable(f"The model server at {self.host} sent more than {MAX_BODY} bytes.")
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
            raise Unclear(f"The model server at {self.host} did not answer with JSON.") from error
        if not isinstance(value, dict):
            raise Unclear(f"The model server at {self.host} did not answer with a JSON object.")
        return value

    def _raise(
        self,
        status: int,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        kind: type[RequestRefused] = RequestRefused,
    ) -> None:
        reason = _reason(body)
        if any(word in reason for word in TOO_LONG):
            message = f"The model server at {self.host} says that the prompt does not fit into its context."
            raise TooLong(message, reason)
        if status in {401, 403}:
            raise Denied(f"The model server at {self.host} refuses the API key: check {self._setting}.")
        if may_pass(status) and status != 500:  # these servers refuse with 500
            passing = TooMany if status == 429 else ModelUnavailable
            pause = retry_after(headers or {})
            raise passing(f"The model server at {self.host} is busy or starting (HTTP status {status}).", pause)
        raise kind(f"The model server at {self.host} refused the request (HTTP status {status}).", reason)


def _reason(body: bytes) -> str:
    """Return the message of a server's error, under any of its keys."""
    try:
        error = json.loads(body)["error"]
        return f"{error.get('type')} {error.get('code')} {error.get('message')}"[:MAX_REASON]
    except (ValueError, LookupError, AttributeError, TypeError):
        return body[:MAX_REASON].decode("utf-8", "replace")
