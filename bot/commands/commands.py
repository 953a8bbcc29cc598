"""The commands `serve`, `ask`, `replay` and `ingest`, and those without any effect: `tools try` and `webhook-check`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus

import aiohttp
from pydantic import TypeAdapter
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from adapters.clock import SystemClock
from adapters.http import client_session
from adapters.section import Host
from adapters.terminal import TerminalMessenger, render
from adapters.tools.section import Tools, ToolSection
from bot.config.settings import Settings, named_secret
from bot.config.workspace import load_workspace
from bot.quick_imports import quick_imports
from bot.tracing import tracing
from bot.web.webhook_sources import webhook_parser
from bot.wiring.application import Core, ingest, learn_owners, new_incident_id, open_core, places_for, redactor
from bot.wiring.ports import all_ports
from core.knowledge.redactor import redacted
from core.model.alert import Alert, AlertDelivery
from core.model.answer import Answer
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.errors import ConfigurationError, IndexUnavailable, MalformedInput, ToolUnavailable
from core.model.findings import Gap
from core.model.incident import Incident
from core.model.messages import AnswerMessage
from core.model.text import counted
from core.model_calls.choice import Use
from core.ports import Change, LogLine, Series, TimeWindow
from handlers.incidents.investigate_incident import conclude_investigation, find_cause, find_owner
from handlers.incidents.open_incident import open_incident
from handlers.incidents.present_incident import present_details, update_chats
from handlers.knowledge.ingest_knowledge import IngestProgress, IngestReport
from handlers.questions.answer_question import READS_ON, prepare_answer

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


TERMINAL = Place(Platform.TERMINAL, "terminal")
UNUSED_MODEL = (
    "Without the language model: it has not passed an exam, which `plumbline llm check` holds, or plumbline.yaml says not to "
    "use it."
)


async def run_serve(settings: Settings, out: Console) -> None:
    """Run the bot until SIGINT or SIGTERM."""
    with quick_imports():
        from bot.server import serve

    with tracing(settings):
        async with open_core(settings, load_workspace(settings.config)) as core:
            await serve(core, lambda address: out.print(f"Plumbline listens on {address}", highlight=False))


async def run_ingest(settings: Settings, names: list[str], out: Console) -> int:
    """Refresh the corpus. Returns exit code 1 if a source failed."""
    workspace = load_workspace(settings.config)
    unknown = set(names) - {source.name for source in workspace.sources}
    if unknown:
        existing = ", ".join(source.name for source in workspace.sources) or "none"
        raise ConfigurationError(
            f"There is no source called {', '.join(sorted(unknown))}: plumbline.yaml has {existing}."
        )
    if names:
        chosen = tuple(source for source in workspace.sources if source.name in names)
        workspace = workspace.model_copy(update={"sources": chosen})
    async with open_core(settings, workspace) as core:
        report = await ingest_with_progress(core, out)
        if not names:
            await learn_owners(core)
    out.print(summary(report), highlight=False)
    return 1 if report.failed else 0


async def ingest_with_progress(core: Core, out: Console) -> IngestReport:
    """Ingest, with a progress bar if the output is a terminal."""
    with progress_bar(out) as on_progress:
        return await ingest(core, on_progress)


@contextmanager
def progress_bar(out: Console) -> Generator[Callable[[IngestProgress], None]]:
    """Yield a callback that updates the progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("reading sources", total=None)

        def on_progress(state: IngestProgress) -> None:
            writing = "embedding passages" if state.is_embedding else "indexing passages"
            description = f"reading {state.source}" if state.source else writing
            progress.update(task, description=description, completed=state.done, total=state.total or None)

        yield on_progress


def summary(report: IngestReport) -> str:
    """Return one line about the ingestion, and one for each failed source and each document left out."""
    line = (
        f"{counted(report.added, 'document')} added, {report.changed} changed, {report.removed} removed, "
        f"{report.unchanged} unchanged."
    )
    failed = (f"{name} could not be read: {error}" for name, error in report.failed.items())
    left_out = (
        f"{name}/{each.path}{'' if each.is_indexed else ' was left out'}: {each.reason}"
        for name in report.left_out
        for each in report.left_out[name]
    )
    return "\n".join([line, *failed, *left_out])


async def run_ask(settings: Settings, text: str, channel: str, out: Console, err: Console, *, as_json: bool) -> None:
    """Answer one question, after building the corpus if there is none.

    Raises ConfigurationError if nothing can be indexed.
    """
    workspace = load_workspace(settings.config)
    if not workspace.sources:
        lacks = f"{settings.config} names no sources" if settings.config else "PLUMBLINE_CONFIG is not set"
        raise ConfigurationError(
            f"Nothing is indexed: {lacks}. `plumbline init` writes a first plumbline.yaml; `plumbline demo` shows a sample "
            "company."
        )
    if channel and channel not in {each.name for each in workspace.channels}:
        raise ConfigurationError(f"There is no channel {channel} in plumbline.yaml.")
    async with open_core(settings, workspace) as core:
        if not await core.knowledge.index.count():
            report = await ingest_with_progress(core, err)
            if not await core.knowledge.index.count():
                problems = " ".join(summary(report).splitlines()[1:])
                raise ConfigurationError(
                    f"Nothing is indexed: {problems or 'the sources in plumbline.yaml contain no documents.'}"
                )
        question = Question(
            id=f"terminal:{uuid.uuid4().hex}",
            text=redacted(text, redactor(core)),
            asker=Person(Platform.TERMINAL, "terminal"),
            place=TERMINAL,
            audience=Audience(frozenset({PUBLIC, f"channel:{channel}"} if channel else {PUBLIC})),
            asked_at=core.clock.now(),
        )
        if core.examined is not None:
            await core.examined.recall()
        with Live(console=out, transient=True) if out.is_terminal and not as_json else nullcontext() as live:

            async def show(excerpts: Answer) -> None:
                if live is not None:
                    live.update(render(AnswerMessage(replace(excerpts, note=READS_ON))), refresh=True)

            answer = await prepare_answer(question, all_ports(core), show=show)
    if as_json:
        print_json(TypeAdapter(Answer), answer)
    else:
        out.print(render(AnswerMessage(answer)))


async def run_replay(settings: Settings, file: Path, source: str, out: Console, err: Console, *, as_json: bool) -> None:
    """Investigate a recorded webhook with a temporary database, and the real tools, history, documents and models.

    If another process holds the index, no documents are quoted. A notice of that, or of a language model that is not used,
    is printed to standard error.
    """
    workspace = load_workspace(settings.config)
    parse = webhook_parser(workspace.webhooks, source)
    body = await asyncio.to_thread(recorded, file)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="plumbline-replay-"))
        kept = settings.model_copy(update={"database_url": f"sqlite:///{folder}/replay.sqlite"})
        try:
            core = await stack.enter_async_context(open_core(kept, workspace))
        except IndexUnavailable as error:
            err.print(f"Without documents: {error}", markup=False, highlight=False, soft_wrap=True)
            core = await stack.enter_async_context(
                open_core(kept.model_copy(update={"data_dir": Path(folder), "qdrant_url": ""}), workspace)
            )
        if core.examined is not None:
            await core.examined.recall()
            if not any(core.examined.skill(use) for use in (Use.CAUSES, Use.OWNERS)):
                err.print(UNUSED_MODEL, markup=False, highlight=False, soft_wrap=True)
        delivery = parse(body, core.clock.now())
        incident = delivery and await open_incident(
            delivery,
            store=core.store,
            places_for=lambda _: (TERMINAL,),
            new_id=new_incident_id,
            redact=redactor(core),
            spelling=core.workspace.spelling,
        )
        if incident is None:
            raise MalformedInput(f"{file} contains no firing alert, so there is nothing to investigate.")
        await _investigate(core, incident.id, TerminalMessenger(Console(quiet=True) if as_json else out))
        async with core.store.transaction() as transaction:
            done = await transaction.incidents.get(incident.id)
    if as_json and done is not None:
        shown = TypeAdapter(Incident).dump_python(done, mode="json")
        parts = shown.pop("findings") | shown.pop("placement")  # for scripts, which need not know how it is divided
        print_json(TypeAdapter(dict[str, Any]), shown | parts)


async def _investigate(core: Core, incident_id: str, messenger: TerminalMessenger) -> None:
    """Take the steps of the workflow `investigate_incident` without the workflow engine."""
    ports = all_ports(core, {Platform.TERMINAL: messenger})
    await update_chats(incident_id, ports)
    await find_owner(incident_id, ports)
    await update_chats(incident_id, ports)
    await find_cause(incident_id, ports)
    await conclude_investigation(incident_id, core.store)
    await update_chats(incident_id, ports)
    await present_details(incident_id, ports)


def recorded(file: Path) -> bytes:
    """Return the body of a recorded webhook. Raises MalformedInput if the file cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise MalformedInput(f"{file} cannot be read: {error.strerror}.") from None


def print_json(adapter: TypeAdapter[object], value: object) -> None:
    """Print a value as JSON to standard output, for scripts."""
    sys.stdout.write(adapter.dump_json(value, indent=2, ensure_ascii=True).decode() + "\n")
