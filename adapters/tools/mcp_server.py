"""Tools of a Model Context Protocol server: those listed in plumbline.yaml and marked as read-only by the server.

The language model gets the descriptions from plumbline.yaml, so a server's text never becomes an instruction.
https://modelcontextprotocol.io/specification/
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent
from mcp.types import Tool as Offered
from pydantic import BaseModel, ValidationError

from adapters.http import proxy_for
from adapters.section import EnvironmentName, Host, Url
from adapters.tools.section import Named, Tools, ToolSection
from core.model.errors import ToolUnavailable
from core.ports import TimeWindow, Tool, ToolParameter

TIMEOUT = 15.0  # seconds per call, including the handshake
MAX_PAGES = 10  # of the list of tools
MAX_BODY = 4 * 1024 * 1024  # bytes per response
MAX_ROWS = 2_000  # lines kept per response
MAX_ANSWER = 200_000  # characters kept per response
MAX_NAME = 40  # characters of a parameter's name
MAX_CHOICES = 50
MAX_CHOICE = 60  # characters


@dataclass(frozen=True, slots=True)
class McpServer:
    """Toolbox over Streamable HTTP. `allowed` maps each tool that may be called to its description."""

    name: str
    url: str
    allowed: Mapping[str, str]
    token: str = ""

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        offered = {each.name: each for each in await self._offered()}
        return [
            _McpTool(self, name, description, _kinds(tool), _parameters(tool))
            for name, description in self.allowed.items()
            if (tool := offered.get(name)) and not _objection(tool)
        ]

    async def check(self) -> None:
        """Raise ToolUnavailable, with the reason, if a listed tool is missing or cannot be offered."""
        offered = {each.name: each for each in await self._offered()}
        for name in self.allowed:
            if name not in offered:
                raise ToolUnavailable(f"{self.name} has no tool {name}: correct its tools in plumbline.yaml.")
            if problem := _objection(offered[name]):
                raise ToolUnavailable(f"The tool {name} of {self.name} {problem}: remove it from plumbline.yaml.")

    async def ask(self, tool: str, arguments: Mapping[str, str | int]) -> str:
        """Call a tool and return its response as text. Raises ToolUnavailable."""
        async with self._client() as client:
            result = await client.call_tool(tool, dict(arguments), read_timeout_seconds=TIMEOUT)
        text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        if result.is_error:
            raise ToolUnavailable(f"{tool} of {self.name} failed: {' '.join(text.split())[:200]}")
        return "\n".join(text[:MAX_ANSWER].splitlines()[:MAX_ROWS])

    async def _offered(self) -> list[Offered]:
        tools: list[Offered] = []
        async with self._client() as client:
            cursor: str | None = None
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
        return tools

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                httpx2.AsyncClient(
                    headers={"Authorization": f"Bearer {self.token}"} if self.token else {},
                    verify=_tls(),
                    proxy=proxy_for(self.url),
                    timeout=TIMEOUT,
                    trust_env=False,
                    event_hooks={"response": [_limit]},
                ) as http,
                Client(streamable_http_client(self.url, http_client=http, max_sse_event_size=MAX_BODY)) as client,
            ):
                yield client
        except TimeoutError as error:
            raise ToolUnavailable(f"{self.name} did not answer within {TIMEOUT:.0f} s.") from error
        except ExceptionGroup as group:
            if expected := group.subgroup(_FAILURES):
                raise ToolUnavailable(f"{self.name} cannot be used: {_first(expected)}.") from group
            raise
        except _FAILURES as error:
            raise ToolUnavailable(f"{self.name} cannot be used: {_first(error)}.") from error


_tls = cache(httpx2.create_ssl_context)  # reading the certificates of authorities takes a tenth of a second
_NOT_IN_NAME = re.compile(r"\W+", re.ASCII)
_FAILURES = (MCPError, httpx2.HTTPError, OSError, ValueError)


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split())[:200] or type(error).__name__


@dataclass(frozen=True, slots=True)
class _McpTool:
    server: McpServer
    remote_name: str
    description: str
    kinds: Mapping[str, str]
    parameters: tuple[ToolParameter, ...]

    @property
    def name(self) -> str:
        return _NOT_IN_NAME.sub("_", f"{self.server.name}_{self.remote_name}")

    async def call(self, arguments: Mapping[str, str]) -> str:
        return await self.server.ask(
            self.remote_name, {name: self._value(name, arguments[name]) for name in self.kinds}
        )

    def _value(self, name: str, text: str) -> str | int:
        if self.kinds[name] == "string":
            return text
        try:
            return int(text)
        except ValueError:
            raise ToolUnavailable(f"{name} must be a whole number.") from None


class _Inputs(BaseModel):
    properties: dict[str, Any] | None = None
    required: list[str] | None = None


def _required(tool: Offered) -> dict[str, Any]:
    """Return the required parameters. Optional ones are left to the server."""
    inputs = _Inputs.model_validate(tool.input_schema)
    return {name: (inputs.properties or {}).get(name) for name in inputs.required or ()}


def _kinds(tool: Offered) -> dict[str, str]:
    return {name: schema["type"] for name, schema in _required(tool).items()}


def _parameters(tool: Offered) -> tuple[ToolParameter, ...]:
    return tuple(
        ToolParameter(name, f"the {name.replace('_', ' ')}", tuple(schema.get("enum", ())))
        for name, schema in _required(tool).items()
    )


def _objection(tool: Offered) -> str:
    """Return the reason why a tool is not offered to the language model; empty if it is."""
    if tool.annotations is None or tool.annotations.read_only_hint is not True:
        return "does not say that it is read-only"
    try:
        required = _required(tool)
    except ValidationError:
        return "has parameters that cannot be read"
    for name, schema in required.items():
        if not (name.isascii() and name.isidentifier()) or len(name) > MAX_NAME or name == "tool":
            return "has a parameter with a name that cannot be used"
        if not isinstance(schema, dict) or schema.get("type") not in ("string", "integer"):
            return f"needs {name}, which is neither a text nor a whole number"
        choices = schema.get("enum", [])
        if (
            not isinstance(choices, list)
            or len(choices) > MAX_CHOICES
            or any(not isinstance(each, str) or len(each) > MAX_CHOICE for each in choices)
        ):
            return f"has choices for {name} that cannot be shown"
    return ""


async def _limit(response: httpx2.Response) -> None:
    """Read at most MAX_BODY bytes of a response."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _LimitedStream(response.stream)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_BODY:
                raise httpx2.ReadError(f"an answer has more than {MAX_BODY} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class McpTool(ToolSection):
    """An MCP server. `tools` maps each tool that may be called to its description for the language model."""

    kind: Literal["mcp"]
    name: str
    url: Url
    tools: Named
    token_env: EnvironmentName | None = None

    def open(self, host: Host) -> Tools:
        token = host.settings.secret(self.token_env, self.name) if self.token_env else ""
        return Tools(toolboxes=(McpServer(self.name, self.url, self.tools, token),))
