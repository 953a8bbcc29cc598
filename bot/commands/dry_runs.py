"""Commands without any effect: `plumbline tools try` and `plumbline webhook-check`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, quote_plus

import aiohttp
from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from adapters.clock import SystemClock
from adapters.outgoing import client_session
from adapters.section import Host
from adapters.tools.section import Tools, ToolSection
from bot.commands.commands import print_json, recorded
from bot.config.settings import Settings, named_secret
from bot.config.workspace import load_workspace
from bot.web.webhook_sources import webhook_parser
from bot.wiring.application import places_for
from core.model.alert import Alert, AlertDelivery
from core.model.conversation import Place
from core.model.errors import ConfigurationError, ToolUnavailable
from core.model.findings import Gap
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
    async with client_session(trace_configs=[_traced(say)]) as session:
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
                    [f"understood: {len(items)} {HEADS[kind]}", *_item_lines(items), *(f"  {gap.text}" for gap in gaps)]
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


def _item_lines(items: Sequence[object] | Mapping[str, Sequence[str]]) -> Iterator[str]:
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


@dataclass(frozen=True, slots=True)
class WebhookReading:
    """A parsed webhook (None if it contains no alert), and the places of its incident."""

    delivery: AlertDelivery | None
    places: tuple[Place, ...]


def run_webhook_check(settings: Settings, file: Path, source: str, out: Console, *, as_json: bool) -> None:
    """Print the result. Raises MalformedInput with the error that the sender would receive."""
    workspace = load_workspace(settings.config)
    delivery = webhook_parser(workspace.webhooks, source)(recorded(file), datetime.now(UTC))
    places = places_for(settings, workspace)(delivery) if delivery is not None and delivery.fires else ()
    reading = WebhookReading(delivery, places)
    if as_json:
        print_json(TypeAdapter(WebhookReading), reading)
    else:
        out.print(Text("\n".join(_reading_lines(reading))), soft_wrap=True)


def _reading_lines(reading: WebhookReading) -> Iterator[str]:
    delivery = reading.delivery
    if delivery is None:
        yield "Understood, but it contains no new alert. Nothing would be posted."
        return
    yield f"group     {delivery.group_key}"
    for alert in delivery.alerts:
        yield from _alert_lines(alert)
    yield from (f"left out  {part}" for part in delivery.unread)
    for place in reading.places:
        yield f"posted in {place.platform} {place.channel}, unless the group already has an open incident"
    if not reading.places:
        yield "posts nothing new, but changes the incident of the group if there is one"


def _alert_lines(alert: Alert) -> Iterator[str]:
    acknowledged = alert.acknowledged
    yield f"alert     {alert.name}"
    status = "ended" if alert.end is not None and not alert.is_cured else alert.status
    yield f"  status  {status}, {alert.severity}, since {alert.starts_at:%Y-%m-%d %H:%M:%S} UTC"
    if acknowledged is not None:
        what = "acknowledgement withdrawn" if acknowledged.withdrawn else "acknowledged"
        yield f"  {what} by {acknowledged.by or 'somebody'}, {acknowledged.at:%Y-%m-%d %H:%M:%S} UTC"
    facts = (
        ("end", alert.end.text if alert.end is not None else ""),
        ("service", alert.service),
        ("text", alert.description),
        ("link", alert.url),
        ("runbook", alert.runbook_url),
    )
    yield from (f"  {name:<7} {' '.join(value.split())}" for name, value in facts if value)
    yield from (f"  label   {name}={value}" for name, value in alert.labels.items())
