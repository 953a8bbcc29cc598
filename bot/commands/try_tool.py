"""`plumbline tools try`: the requests that a tool sends for a service, and what is understood of the answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import quote, quote_plus

import aiohttp
from rich.console import Console
from rich.text import Text

from adapters.clock import SystemClock
from adapters.section import Host
from adapters.tools.section import Tools, ToolSection
from bot.config.settings import Settings, named_secret
from bot.config.workspace import load_workspace
from core.model.errors import ConfigurationError, ToolUnavailable
from core.model.explanation import Gap
from core.ports import Change, LogLine, Series, TimeWindow

SHOWN = 5  # items of each kind of data
MAX_TEXT = 2_000  # characters of a body
HIDDEN = frozenset({"authorization", "cookie", "x-amz-security-token"})
UNTOLD = frozenset({"host", "accept-encoding", "user-agent", "content-length", "accept"})
HEADS = {"lines": "log records", "series": "series", "changes": "changes", "calls": "callers"}


async def run_try(settings: Settings, name: str, service: str, minutes: int, out: Console) -> int:
    """Print what happens for a service in the last minutes; return 1 if something could not be read.

    Raises ConfigurationError if there is no such tool.
    """
    tools = load_workspace(settings.config).tools
    section = next((tool for tool in tools if name in (tool.name, getattr(tool, "kind", ""))), None)
    if section is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        raise ConfigurationError(f"plumbline.yaml has no tool {name}; it has: {names}.")
    now = datetime.now(UTC)
    window, secrets = TimeWindow(now - timedelta(minutes=minutes), now), _secrets(section)

    def say(text: str) -> None:
        out.print(Text(_without(secrets, text)), soft_wrap=True)

    failed = False
    async with aiohttp.ClientSession(trace_configs=[_traced(say)]) as session:
        for kind, reading in _readings(section.open(Host(settings, session, SystemClock())), service, window):
            try:
                items = await reading
            except ToolUnavailable as error:
                failed = True
                say(f"not read: {error}")
                continue
            gaps: Sequence[Gap] = getattr(items, "gaps", ())
            failed = failed or bool(gaps)
            say(
                "\n".join(
                    [f"understood: {len(items)} {HEADS[kind]}", *_lines(items), *(f"  {gap.text}" for gap in gaps)]
                )
            )
    return int(failed)


def _readings(
    tools: Tools, service: str, window: TimeWindow
) -> Iterator[tuple[str, Awaitable[Sequence[object] | Mapping[str, Sequence[str]]]]]:
    yield from (("lines", each.lines(service, window, 1_000)) for each in tools.logs)
    yield from (("series", each.series(service, window)) for each in tools.metrics)
    yield from (("changes", each.changes(window)) for each in tools.changes)
    yield from (("calls", each.dependencies(window)) for each in tools.graphs)


def _lines(items: Sequence[object] | Mapping[str, Sequence[str]]) -> Iterator[str]:
    if isinstance(items, Mapping):
        yield from (f"  {caller} calls {', '.join(callees)}" for caller, callees in list(items.items())[-SHOWN:])
        return
    for each in items[-SHOWN:]:
        match each:
            case LogLine():
                yield f"  {each.at:%Y-%m-%dT%H:%M:%SZ} {each.level} {each.text[:200]}"
            case Series():
                yield f"  {each.metric}: {len(each.times)} values, the last {each.values[-1]:g}"
            case Change():
                yield f"  {each.at:%Y-%m-%dT%H:%M:%SZ} {each.kind} of {', '.join(each.touched) or '–'}: {each.title[:200]}"
            case _:
                yield f"  {each}"


def _secrets(section: ToolSection) -> list[str]:
    """Return the secrets of a tool as they may stand in a request."""
    named = [value for key, value in section if key.endswith("_env") and value]
    named += getattr(section, "secrets", {}).values()
    values = [named_secret(variable, section.name) for variable in named]
    return [form for value in values for form in dict.fromkeys((value, quote(value, safe=""), quote_plus(value)))]


def _without(secrets: Iterable[str], text: str) -> str:
    for secret in secrets:
        text = text.replace(secret, "…")
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)


def _traced(say: Callable[[str], None]) -> aiohttp.TraceConfig:
    """Return what tells each request, without its credentials, and the status of its answer."""

    async def began(_: aiohttp.ClientSession, __: SimpleNamespace, request: aiohttp.TraceRequestStartParams) -> None:
        headers = {name: "…" if name.lower() in HIDDEN else value for name, value in request.headers.items()}
        lines = [f"  {name}: {value}" for name, value in headers.items() if name.lower() not in UNTOLD]
        say("\n".join([f"{request.method} {request.url.with_user(None)}", *lines]))

    async def sent(_: aiohttp.ClientSession, __: SimpleNamespace, chunk: aiohttp.TraceRequestChunkSentParams) -> None:
        if chunk.chunk:
            say(f"  {chunk.chunk[:MAX_TEXT].decode('utf-8', 'replace')}")

    async def ended(_: aiohttp.ClientSession, __: SimpleNamespace, answer: aiohttp.TraceRequestEndParams) -> None:
        say(f"  answered with status {answer.response.status}")

    traced = aiohttp.TraceConfig()
    traced.on_request_start.append(began)
    traced.on_request_chunk_sent.append(sent)
    traced.on_request_end.append(ended)
    return traced
