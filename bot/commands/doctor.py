"""`plumbline doctor`: check the configuration and all systems, and say how to correct each problem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.text import Text

from adapters.alerts.fields import WebhookSection
from adapters.catalogues.section import CatalogueSection
from adapters.chat import CHATS, DOCTOR, CheckResult
from adapters.clock import SystemClock
from adapters.fitting import LEARNING, can_learn
from adapters.http import client_session
from adapters.publishers.section import PublisherSection
from adapters.readers.sections import OnCallSystem
from adapters.section import Host
from adapters.sources.section import SourceSection
from adapters.tools.section import FilesTool, ToolSection
from bot.commands.llm_commands import check_model
from bot.commands.records import is_open, open_store
from bot.config.section import REGISTRIES
from bot.config.settings import Settings, keep_private, missing_secrets, named_secret
from bot.config.workspace import AgentSection, Workspace, load_workspace
from bot.installation import overwritten
from bot.web.routes import read_refusals
from bot.web.webhook_sources import webhook_sources
from bot.wiring.application import check_sign_in, llama_server, open_core
from bot.wiring.catalogues import read_catalogue
from core.model.errors import ConfigurationError, IndexUnavailable, PlumblineError
from core.model.text import counted
from core.ports import CheckedSource, Ingestion
from handlers.questions.closed_chats import find_closed_chats

TIMEOUT = 5.0  # seconds for an external system to answer
TOOL_TIMEOUT = 20.0  # seconds for a tool to answer for all of its services
SHOWN = 5  # documents left out that are listed per source


async def run_doctor(settings: Settings, out: Console, only: str = "") -> int:
    """Print all findings, or those about one chat. Returns exit code 1 if any is fatal.

    Raises ConfigurationError if there is no such chat.
    """
    if only not in ("", *(chats := CHATS.all())):
        raise ConfigurationError(f"There is no chat {only}: use one of {', '.join(chats)}.")
    failed = False
    async with client_session(timeout=aiohttp.ClientTimeout(total=TIMEOUT), headers={"User-Agent": DOCTOR}) as session:
        async for finding in _findings(settings, session, only):
            mark, style = ("✓", "green") if finding.well else ("✗", "red") if finding.fatal else ("!", "yellow")
            out.print(Text(f"{mark} {finding.what}: {finding.result}", style), soft_wrap=True)
            if finding.remedy:
                out.print(Text(f"    {finding.remedy}"), soft_wrap=True)
            failed = failed or (finding.fatal and not finding.well)
    return 1 if failed else 0


async def _findings(settings: Settings, session: aiohttp.ClientSession, only: str) -> AsyncIterator[CheckResult]:
    try:
        workspace = load_workspace(settings.config)
    except PlumblineError as error:
        yield CheckResult("plumbline.yaml", "cannot be used", str(error))
        return
    if only:
        async for finding in _chats(settings, workspace, session, only):
            yield finding
        if not (access := check_access(settings)).well and access.fatal:
            yield access
        return
    for finding in (
        _workspace(settings, workspace),
        *(
            CheckResult(f"plugin {name}", "is left out", fault, fatal=False)
            for registry in REGISTRIES
            for name, fault in registry.faults().items()
        ),
        *_missing(settings, workspace),
        *((CheckResult("installation", "was overwritten", fault),) if (fault := overwritten()) else ()),
        *(() if can_learn() else (CheckResult("learning", "is off", LEARNING, fatal=False),)),
        _data_folder(settings.data_dir),
        *await _state(settings, workspace),
    ):
        yield finding
    async for finding in _chats(settings, workspace, session):
        yield finding
    yield await _language_model(settings)
    async for finding in _outside_systems(workspace, settings, session):
        yield finding
    for finding in (
        check_access(settings),
        *check_webhooks(settings, workspace.webhooks),
        *map(check_agent, workspace.agents),
        *check_refusals(settings.data_dir),
    ):
        yield finding
    if workspace.sign_in is not None:
        yield await check_sign_in(workspace.sign_in, settings, session)


async def _chats(
    settings: Settings, workspace: Workspace, session: aiohttp.ClientSession, only: str = ""
) -> AsyncIterator[CheckResult]:
    host = Host(settings, session, SystemClock())
    for chat in map(settings.chat, CHATS.all().values()):
        if only not in ("", chat.platform):
            continue
        if chat.is_on:
            async for finding in chat.findings(host, workspace.channels):
                yield finding
        elif chat in settings.playgrounds:
            yield CheckResult(chat.title, "anonymous, for the playground on this machine")
        else:
            yield CheckResult(chat.title, f"off ({chat.required[0]} is not set)")
    with suppress(PlumblineError, OSError):  # another finding says that the database cannot be opened
        async with open_store(settings) as store:
            for sentence in await find_closed_chats(store):
                yield CheckResult("messages", "wait for a chat", sentence, fatal=False)


def check_refusals(folder: Path) -> Iterator[CheckResult]:
    """Show what was refused or left out last, by sender."""
    refused = read_refusals(folder)
    for sender in sorted({each.sender for each in refused}):
        latest = [
            f"{each.at} {each.reason}: {each.detail}{f' ({each.times} times)' if each.times > 1 else ''}"
            for each in refused
            if each.sender == sender
        ][-SHOWN:]
        yield CheckResult(f"requests of {sender}", "refused or read in part lately", "\n    ".join(latest), fatal=False)


async def _outside_systems(
    workspace: Workspace, settings: Settings, session: aiohttp.ClientSession
) -> AsyncIterator[CheckResult]:
    host = Host(settings, session, SystemClock())
    for check in chain(
        (check_source(each, host) for each in workspace.sources),
        (check_tool(each, host) for each in workspace.tools),
        (check_schedule(each, host) for each in workspace.on_call),
        (check_filing(each, host) for each in workspace.filing),
        (check_catalogue(each, workspace, host) for each in workspace.catalogues),
    ):
        yield await check


def _workspace(settings: Settings, workspace: Workspace) -> CheckResult:
    if settings.config is None:
        return CheckResult(
            "plumbline.yaml",
            "not set",
            "Set PLUMBLINE_CONFIG to the file that names your sources and teams.",
            fatal=False,
        )
    return CheckResult(
        "plumbline.yaml",
        f"{settings.config.resolve()}: {counted(len(workspace.sources), 'source')}, "
        f"{counted(len(workspace.teams), 'team')}, {counted(len(workspace.channels), 'channel')}",
    )


def _missing(settings: Settings, workspace: Workspace) -> Iterator[CheckResult]:
    """Show which parts of the configuration are empty, and what the bot cannot do without them."""
    documents = [section for section in workspace.sources if section.has_pages]
    parts = {
        "teams": (workspace.teams or workspace.catalogues, "Nobody is named as the owner of an incident, or called."),
        "tools": (workspace.tools, "Causes are sought only in the alert and in past incidents."),
        "documents": (documents, "Questions find no page, and incidents no runbook."),
    }
    for name, (given, without) in parts.items():
        if settings.config is not None and not given:
            yield CheckResult(
                name,
                "none",
                f"{without} Add `{'sources' if name == 'documents' else name}` to plumbline.yaml.",
                fatal=False,
            )


def _data_folder(folder: Path) -> CheckResult:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".doctor"
        probe.touch()
        probe.unlink()
        wide = keep_private(folder)
    except OSError as error:
        return CheckResult("data folder", f"{folder}: {error.strerror}", "Set PLUMBLINE_DATA_DIR to a writable folder.")
    if wide:
        remedy = f"Run chmod -R go-rwx on {', '.join(map(str, wide[:SHOWN]))}."
        return CheckResult("data folder", "other users may read it", remedy, fatal=False)
    return CheckResult("data folder", f"{folder} is writable")


async def _state(settings: Settings, workspace: Workspace) -> list[CheckResult]:
    try:
        async with open_core(settings, workspace) as core:
            count = await core.knowledge.index.count()
            async with core.store.transaction() as transaction:
                ingestions = await transaction.ingestions.all()
    except PlumblineError as error:
        if isinstance(error, IndexUnavailable) and is_open(settings):
            return [CheckResult("database and index", "open in the running bot, whose local page shows the sources")]
        return [
            CheckResult("start", "the bot cannot start", str(error))
            if isinstance(error, ConfigurationError)
            else CheckResult("database and index", "cannot be opened", str(error))
        ]
    except OSError as error:
        return [
            CheckResult(
                "database and index",
                "cannot be reached",
                f"{error}. Check PLUMBLINE_DATABASE_URL and PLUMBLINE_QDRANT_URL.",
            )
        ]
    findings = [finding for ingestion in ingestions for finding in _last_ingestion(ingestion)]
    if count:
        return [CheckResult("index", counted(count, "passage")), *findings]
    remedy = (
        "Run `plumbline ingest`, or `plumbline serve`, which indexes the sources at start."
        if workspace.sources
        else "Add `sources` to plumbline.yaml; `plumbline init` writes a first file."
    )
    return [CheckResult("index", "nothing is indexed", remedy), *findings]


def _last_ingestion(ingestion: Ingestion) -> Iterator[CheckResult]:
    what = f"last ingestion of {ingestion.source}"
    if ingestion.finished_at is None:
        yield CheckResult(f"first import of {ingestion.source}", f"{counted(ingestion.documents, 'document')} so far")
    if ingestion.failure:
        yield CheckResult(what, "failed", ingestion.failure, fatal=False)
    if count := len(ingestion.left_out):
        yield CheckResult(what, f"{count} left out", "\n    ".join(ingestion.left_out[:SHOWN]), fatal=False)


async def _language_model(settings: Settings) -> CheckResult:
    if not settings.llm_url:
        return CheckResult(
            "language model", "off (PLUMBLINE_LLM_URL is not set); answers come from the evidence engine alone"
        )
    async with client_session() as session:
        model = llama_server(settings.llm_url, settings, session)
        async for ability in check_model(model):
            if not ability.needed:
                break
            if not ability.works:
                return CheckResult(
                    "language model",
                    f"fails at {ability.name}",
                    f"{ability.found.rstrip('.')}. Run `plumbline llm check` to test its other abilities.",
                )
        return CheckResult("language model", f"{model.name} with a context of {await model.context_tokens()} tokens")


async def _tried(
    what: str,
    attempt: Callable[[], Awaitable[str | None]],
    trouble: str = "cannot be read",
    result: str = "",
    *,
    seconds: float = TOOL_TIMEOUT,
    fatal: bool = True,
) -> CheckResult:
    """Return what an attempt returns, or else `result`, as a finding, or its error as one with a remedy."""
    try:
        async with asyncio.timeout(seconds):
            return CheckResult(what, await attempt() or result)
    except PlumblineError as error:
        return CheckResult(what, trouble, str(error), fatal)
    except TimeoutError:
        return CheckResult(
            what, "does not answer", f"No answer within {seconds:.0f} s: check the network and the address.", fatal
        )


async def check_source(section: SourceSection, host: Host) -> CheckResult:
    """Check that a source exists and grants access, without reading it."""
    what = f"source {section.name}"
    path = getattr(section, "path", None)
    if path is not None and not path.exists():
        return CheckResult(what, "missing", f"Correct its path: {path}.")

    async def attempt() -> str:
        source = section.open(host)
        if isinstance(source, CheckedSource):
            await source.check()
        return f"{section.label} {section.place}"

    return await _tried(what, attempt, seconds=TIMEOUT)


async def check_tool(tool: ToolSection, host: Host) -> CheckResult:
    """Check that a tool exists and grants access."""
    folder = tool.path if isinstance(tool, FilesTool) else None
    if folder is not None and not folder.is_dir():
        return CheckResult(tool.name, "missing", f"Correct its path: {folder}.")

    async def attempt() -> str:
        for each in tool.open(host).checked:
            await each.check()
        return str(folder or f"{tool.label} accepts the credentials")

    # Whatever else is in a file, the records that are understood are read.
    return await _tried(
        tool.name, attempt, f"cannot be read{' in full' if folder is not None else ''}", fatal=folder is None
    )


async def check_schedule(section: OnCallSystem, host: Host) -> CheckResult:
    """Check that an on-call system grants access. Not fatal, because triage works without it."""
    finding = await _tried(
        section.name,
        lambda: section.open(host).check(),
        "does not say who is on call",
        "says who is on call",
        fatal=False,
    )
    return replace(finding, remedy=section.definition.notice, fatal=False) if finding.well else finding


async def check_filing(section: PublisherSection, host: Host) -> CheckResult:
    """Check that something can be filed in a target, without writing there. Not fatal: the draft would be kept."""
    reached = "reached; whether the token may create issues is not known"
    result = f"{section.label}: {'the token may write there' if section.says_who_may_write else reached}"
    return await _tried(
        f"filing in {section.name}", lambda: section.open(host).check(), "not possible", result, fatal=False
    )


async def check_catalogue(section: CatalogueSection, workspace: Workspace, host: Host) -> CheckResult:
    """Check that a catalogue can be read. Not fatal, because the teams of plumbline.yaml remain."""

    async def attempt() -> str:
        catalogue = await read_catalogue(section, workspace, host)
        rules = sum(len(code.rules) for code in catalogue.code)
        callers = counted(len(catalogue.dependencies), "service that calls others", "services that call others")
        result = f"{counted(len(catalogue.teams), 'team')}, {counted(rules, 'rule')}, {callers}"
        left_out = "\n    ".join(
            (f"; {counted(len(catalogue.left_out), 'thing')} left out:", *catalogue.left_out[:SHOWN])
        )
        return result + left_out if catalogue.left_out else result

    return await _tried(f"{section.label} {section.place}", attempt, fatal=False)


SHORT = 16  # characters; shorter secrets can be guessed

BEFORE_A_PROXY = (
    "They refuse requests that come through a proxy. Set PLUMBLINE_WEBHOOK_SECRET and PLUMBLINE_CONSOLE_TOKEN before you "
    "put a proxy in front of them."
)
OPEN = "Anybody on this machine can open an incident. Set PLUMBLINE_WEBHOOK_SECRET to change that."


def check_access(settings: Settings) -> CheckResult:
    """Check that everybody who can reach the bot must present a secret."""
    what = "inbound requests"
    if missing := missing_secrets(settings):
        return CheckResult(what, "are accepted from other machines without a secret", missing)
    secrets = {"webhooks without `secret_env`": settings.webhook_secret, "the local page": settings.console_token}
    if without := [name for name, secret in secrets.items() if secret is None]:
        result = f"{' and '.join(without)} require no secret and answer only this machine"
        return CheckResult(what, result, BEFORE_A_PROXY, fatal=False)
    return CheckResult(what, "all require a secret")


def check_agent(section: AgentSection) -> CheckResult:
    """Check that an agent's token is set and long enough."""
    what = f"agent {section.name}"
    try:
        token = named_secret(section.token_env, section.name)
    except ConfigurationError as error:
        return CheckResult(what, "cannot call, and the bot does not start", str(error))
    if len(token) < SHORT:
        remedy = f"Use a token of at least {SHORT} characters. It is all that keeps strangers from asking."
        return CheckResult(what, f"has a token of {len(token)} characters", remedy, fatal=False)
    return CheckResult(what, "has a token")


def check_webhooks(settings: Settings, webhooks: Mapping[str, WebhookSection]) -> Iterator[CheckResult]:
    """Check that each source's secret exists and is long enough, and that the generic webhook's paths are valid."""
    try:
        sources = webhook_sources(webhooks)
    except ConfigurationError as error:
        yield CheckResult("webhooks", "cannot be used", str(error))
        return
    shared = settings.webhook_secret.get_secret_value() if settings.webhook_secret else None
    own = {name: source.secret for name, source in sources.items() if source.secret is not None}
    for name, secret in {"all sources": shared, **own}.items():
        if secret is not None and len(secret) < SHORT:
            remedy = (
                f"Use a secret of at least {SHORT} characters. It is all that keeps strangers from opening incidents."
            )
            yield CheckResult("webhooks", f"the secret of {name} has {len(secret)} characters", remedy, fatal=False)
    if settings.local and shared is None and len(own) < len(sources):
        yield CheckResult("webhooks", "open to this machine", OPEN, fatal=False)
        return
    yield CheckResult("webhooks", f"{counted(len(sources), 'source')}, {len(own)} with a secret of their own")
