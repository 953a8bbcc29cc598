"""`plumbline doctor`: every check with its finding, and how to mend it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.text import Text

from adapters.clock import SystemClock
from bot import tool_sections as sections
from bot.llm_check import check_model
from bot.model_metrics import TokenTally
from bot.model_wiring import llama_server
from bot.settings import Settings
from bot.source_sections import SourceSection
from bot.source_wiring import open_source
from bot.tool_wiring import open_tool
from bot.wiring import open_core
from bot.workspace import Workspace, load_workspace
from core.conversation import Platform
from core.errors import PlumblineError
from core.ports import CheckedSource

TIMEOUT = 5.0  # seconds for an outside system to answer
TOOL_TIMEOUT = 20.0  # seconds for one to answer about all of its services
SLACK_SCOPES = frozenset(
    {
        "app_mentions:read",
        "chat:write",
        "channels:history",
        "channels:read",
        "commands",
        "groups:history",
        "groups:read",
    }
    | {"im:history", "im:read", "users:read"}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. `mend` says what to do, empty if all is well; `fatal` findings make the exit code 1."""

    what: str
    result: str
    mend: str = ""
    fatal: bool = True

    @property
    def well(self) -> bool:
        return not self.mend


async def run_doctor(settings: Settings, out: Console) -> int:
    """Print every finding; exit code 1 if a fatal one is among them."""
    failed = False
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
        async for finding in _findings(settings, session):
            mark, style = ("✓", "green") if finding.well else ("✗", "red") if finding.fatal else ("!", "yellow")
            out.print(Text(f"{mark} {finding.what}: {finding.result}", style))
            if finding.mend:
                out.print(Text(f"    {finding.mend}"))
            failed = failed or (finding.fatal and not finding.well)
    return 1 if failed else 0


async def _findings(settings: Settings, session: aiohttp.ClientSession) -> AsyncIterator[Finding]:
    try:
        workspace = load_workspace(settings.config)
    except PlumblineError as error:
        yield Finding("plumbline.yaml", "cannot be used", str(error))
        return
    yield _workspace(settings, workspace)
    yield _data_folder(settings.data_dir)
    yield await _state(settings, workspace)
    yield await _slack(settings, session)
    async for finding in _open_channels(settings, workspace, session):
        yield finding
    yield _teams(settings)
    yield await _language_models(settings)
    for section in workspace.sources:
        yield await check_source(section, settings, session)
    for tool in workspace.tools:
        yield await check_tool(tool, session)
    if settings.local and settings.webhook_secret is None:
        mend = "Anybody on this machine can open an incident. Set PLUMBLINE_WEBHOOK_SECRET to change that."
        yield Finding("webhooks", "open to this machine", mend, fatal=False)


def _workspace(settings: Settings, workspace: Workspace) -> Finding:
    if settings.config is None:
        return Finding(
            "plumbline.yaml",
            "not set",
            "Set PLUMBLINE_CONFIG to the file that names your sources and teams.",
            fatal=False,
        )
    counts = f"{len(workspace.sources)} sources, {len(workspace.teams)} teams, {len(workspace.channels)} channels"
    return Finding("plumbline.yaml", f"{settings.config}: {counts}")


def _data_folder(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".doctor"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return Finding(
            "data folder", f"{folder}: {error.strerror}", "Set PLUMBLINE_DATA_DIR to a folder of the bot's own."
        )
    return Finding("data folder", f"{folder} is writable")


async def _state(settings: Settings, workspace: Workspace) -> Finding:
    try:
        async with open_core(settings, workspace) as core:
            count = await core.knowledge.index.count()
    except PlumblineError as error:
        return Finding("database and index", "cannot be opened", str(error))
    except OSError as error:
        return Finding(
            "database and index",
            "cannot be reached",
            f"{error}. Check PLUMBLINE_DATABASE_URL and PLUMBLINE_QDRANT_URL.",
        )
    if not count and workspace.sources:
        return Finding("index", "empty", "Run `plumbline ingest`; `plumbline serve` does so as well.", fatal=False)
    return Finding("index", f"{count} passages")


async def _slack(settings: Settings, session: aiohttp.ClientSession) -> Finding:
    if settings.slack_bot_token is None:
        return Finding("Slack", "off (SLACK_BOT_TOKEN is not set)")
    headers = {"Authorization": f"Bearer {settings.slack_bot_token.get_secret_value()}"}
    try:
        async with session.post(f"{settings.slack_api_url}auth.test", headers=headers) as response:
            granted = {scope.strip() for scope in response.headers.get("X-OAuth-Scopes", "").split(",")} - {""}
            body = await response.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return Finding(
            "Slack", "does not answer", f"{settings.slack_api_url}: {error}. Check the network and SLACK_API_URL."
        )
    if not body.get("ok"):
        return Finding(
            "Slack", f"refuses the token: {body.get('error')}", "Install the app anew and copy its bot token."
        )
    missing = SLACK_SCOPES - granted
    if granted and missing:
        return Finding("Slack", "scopes are missing", f"Add {', '.join(sorted(missing))} and reinstall the app.")
    if settings.slack_signing_secret is None and settings.slack_app_token is None:
        return Finding("Slack", "cannot receive", "Set SLACK_SIGNING_SECRET (HTTP) or SLACK_APP_TOKEN (Socket Mode).")
    return Finding("Slack", f"connected as {body.get('user')} in {body.get('team')}")


async def _open_channels(
    settings: Settings, workspace: Workspace, session: aiohttp.ClientSession
) -> AsyncIterator[Finding]:
    """Channels that Slack calls private and plumbline.yaml does not: their incidents would be named to everybody."""
    if settings.slack_bot_token is None:
        return
    headers = {"Authorization": f"Bearer {settings.slack_bot_token.get_secret_value()}"}
    for channel in workspace.channels:
        query = {"channel": channel.ids.get(Platform.SLACK, "")}
        if channel.private or not query["channel"]:
            continue
        try:
            async with session.get(
                f"{settings.slack_api_url}conversations.info", params=query, headers=headers
            ) as info:
                answer: dict[str, dict[str, bool]] = await info.json()
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return  # the check of Slack itself has said so
        if answer.get("channel", {}).get("is_private"):
            mend = "Set `private: true` for it in plumbline.yaml, or its incidents are named in other channels."
            yield Finding(f"channel {channel.name}", "is private in Slack", mend)


def _teams(settings: Settings) -> Finding:
    if settings.teams_app_id and settings.teams_app_password is None:
        return Finding("Teams", "has no password", "Set TEAMS_APP_PASSWORD, or unset TEAMS_APP_ID.")
    if settings.teams_app_id:
        return Finding("Teams", f"app {settings.teams_app_id} through {settings.teams_sdk}")
    return Finding("Teams", "anonymous, for the playground on this machine" if settings.teams_anonymous else "off")


async def _language_models(settings: Settings) -> Finding:
    if not settings.llm_urls:
        return Finding("language model", "off (PLUMBLINE_LLM_URL is not set); the evidence engine works alone")
    found: list[str] = []
    async with aiohttp.ClientSession() as session:
        for url in settings.llm_urls:
            model = llama_server(url, settings, session, TokenTally())
            async for ability in check_model(model):
                if not ability.needed:
                    break
                if not ability.works:
                    mend = f"{ability.found} `plumbline llm check` says what else the server can do."
                    return Finding("language model", f"fails at {ability.name}", mend)
            found.append(f"{model.name} with a context of {await model.context_tokens()} tokens")
    return Finding("language model", ", ".join(found))


async def check_source(section: SourceSection, settings: Settings, session: aiohttp.ClientSession) -> Finding:
    """Whether the source is there and lets us in, without reading it."""
    what = f"source {section.name}"
    path = getattr(section, "path", None)
    if path is not None and not path.exists():
        return Finding(what, "missing", f"Correct its path: {path}.")
    try:
        source = open_source(section, settings, session, SystemClock())
        if isinstance(source, CheckedSource):
            async with asyncio.timeout(TIMEOUT):
                await source.check()
    except PlumblineError as error:
        return Finding(what, "cannot be read", str(error))
    except TimeoutError:
        return Finding(what, "does not answer", f"No answer within {TIMEOUT:.0f} s: check the network and its address.")
    return Finding(what, f"{section.kind.replace('_', ' ')} {section.place}")


async def check_tool(tool: sections.ToolSection, session: aiohttp.ClientSession) -> Finding:
    """Whether a tool is there and lets us in."""
    match tool:
        case sections.LogFilesTool() | sections.MetricFilesTool() | sections.ChangeFilesTool():
            if tool.path.is_dir():
                return Finding(tool.name, str(tool.path))
            return Finding(tool.name, "missing", f"Correct its path: {tool.path}.")
        case sections.PrometheusTool():
            return await _prometheus(tool, session)
        case _:
            return await _asked(tool, session)


async def _asked(tool: sections.ToolSection, session: aiohttp.ClientSession) -> Finding:
    try:
        async with asyncio.timeout(TOOL_TIMEOUT):
            for each in open_tool(tool, session).checked:
                await each.check()
    except PlumblineError as error:
        return Finding(tool.name, "cannot be read", str(error))
    except TimeoutError:
        mend = f"No answer within {TOOL_TIMEOUT:.0f} s: check the network and its address."
        return Finding(tool.name, "does not answer", mend)
    return Finding(tool.name, f"{tool.kind.replace('_', ' ')} lets us in")


async def _prometheus(tool: sections.PrometheusTool, session: aiohttp.ClientSession) -> Finding:
    try:
        async with session.get(f"{tool.url.rstrip('/')}/-/ready") as response:
            if response.status == 200:
                return Finding(tool.name, f"{tool.url} is ready")
            return Finding(tool.name, f"answers {response.status}", f"Check that {tool.url} is a Prometheus.")
    except (aiohttp.ClientError, TimeoutError) as error:
        return Finding(tool.name, "does not answer", f"{tool.url}: {error}. Check the address in plumbline.yaml.")
