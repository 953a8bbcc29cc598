"""`plumbline doctor teams`: check the Teams app's credentials, services, channels, messages and package.

The manifest of the app must have certain entries.
"""

from __future__ import annotations

import json
import uuid
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.chat import CheckResult, probe
from adapters.microsoft_login import TOLD_BEFORE
from adapters.section import Host
from adapters.store.conversations import SqlTeamsConversations
from adapters.store.database import migrate, open_database
from adapters.teams.connector import NOT_OURS, AccessToken, Connector
from adapters.teams.history import TeamsHistory, Unreadable
from adapters.teams.references import PUBLIC_CLOUD, Cloud
from adapters.teams.render import EXTENSION, EXTENSION_TITLE
from adapters.teams.settings import TeamsSettings
from core.incidents.incident_questions import CommandName
from core.model.conversation import Channel, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError

SERVICE = "https://smba.trafficmanager.net/teams/"  # the global connector service
PACKAGE = Path("plumbline-teams.zip")  # as deploy/teams/build.py names it
MAX_MANIFEST = 1 << 20  # bytes
WITHOUT_SDK = "Microsoft archived it and fixes no security holes. Unset TEAMS_SDK to do without it."
WITHOUT_HISTORY = (
    "Without it, a post whose answer is lost may appear twice, and answers in a thread ignore its earlier messages."
)


async def check_teams(
    chat: TeamsSettings,
    host: Host,
    channels: Sequence[Channel],
    *,
    cloud: Cloud = PUBLIC_CLOUD,
    service_url: str = SERVICE,
    package: Path = PACKAGE,
) -> AsyncIterator[CheckResult]:
    """Check ids, token, signing keys, connector service, channels, Microsoft Graph, inbound messages and the app
    package.
    """
    yield _ids(chat)
    if chat.sdk == "botbuilder":
        yield CheckResult("Teams SDK", "botbuilder has had no support since 31 December 2025", WITHOUT_SDK, fatal=False)
    try:
        chat.check()
    except PlumblineError as error:
        yield CheckResult("Teams", "has no credentials", str(error))
        return
    named = [channel for channel in channels if Platform.TEAMS in channel.ids]
    token = chat.token(cloud, host)
    try:
        await token.get()
        yield CheckResult("Teams token", f"is issued to {chat.app_id}")
        yield _expiry(token.login.expires_at(), host)
        async for finding in _service(service_url, Connector(token, host.session), named):
            yield finding
        async for finding in _histories(chat, host, named, token, cloud):
            yield finding
    except ChatUnavailable as error:
        yield CheckResult("Teams token", "is not issued", f"{error} Check the network connection to {cloud.login_url}.")
    except PlumblineError as error:
        yield CheckResult("Teams token", "is refused", str(error))
    yield await _signing_keys(cloud, host)
    yield await _check_inbound(host)
    for finding in _package(package, chat.app_id):
        yield finding


def _ids(chat: TeamsSettings) -> CheckResult:
    wrong = [
        name
        for name, ids in (("TEAMS_APP_ID", {chat.app_id}), ("TEAMS_TENANT_ID", chat.tenant_ids))
        if not all(map(_is_uuid, ids))
    ]
    if wrong:
        remedy = f"Copy {' and '.join(wrong)} from the app registration, like 00000000-0000-0000-0000-000000000000."
        return CheckResult("Teams ids", "are not valid", remedy)
    if not chat.tenant_ids:
        remedy = (
            "The bot answers people of every organisation that installs the app, and a single-tenant bot gets no token. "
            "Set TEAMS_TENANT_ID to your own tenant."
        )
        return CheckResult("Teams tenants", "all are accepted", remedy, fatal=False)
    return CheckResult("Teams tenants", f"{len(chat.tenant_ids)} accepted, through {chat.sdk}")


def _expiry(expires_at: datetime | None, host: Host) -> CheckResult:
    if expires_at is None:
        return CheckResult("Teams credentials", "do not say when they expire")
    remedy = "Renew them: without them, nothing is posted." if expires_at - host.clock.now() < TOLD_BEFORE else ""
    return CheckResult("Teams credentials", f"expire on {expires_at:%Y-%m-%d}", remedy, fatal=False)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


async def _service(service_url: str, connector: Connector, channels: Sequence[Channel]) -> AsyncIterator[CheckResult]:
    """Check that the connector service answers, and that the app is in the channels that plumbline.yaml names."""
    try:
        await connector.get(service_url)
        yield CheckResult("Teams service", f"{service_url} answers")
        for channel in channels:
            status = (await connector.members(service_url, channel.ids[Platform.TEAMS], {"pageSize": "50"})).status
            if status in NOT_OURS:
                remedy = "Add the app to the team of this channel, or correct its id in plumbline.yaml."
                yield CheckResult(f"Teams channel {channel.name}", f"does not admit the app (HTTP {status})", remedy)
            else:
                yield CheckResult(f"Teams channel {channel.name}", "is open to the app")
    except ChatUnavailable as error:
        remedy = f"{error} Check the network connection. If there is a proxy, allow this host in it."
        yield CheckResult("Teams service", f"{service_url} does not answer", remedy)


async def _histories(
    chat: TeamsSettings, host: Host, channels: Sequence[Channel], token: AccessToken, cloud: Cloud
) -> AsyncIterator[CheckResult]:
    """Check that Microsoft Graph can read the configured channels."""
    if not channels:
        return
    try:
        async with _opened(host.settings.database) as engine:
            history = chat.history(token, SqlTeamsConversations(engine), cloud, host)
            for channel in channels:
                yield await _history(history, channel)
    except (PlumblineError, OSError) as error:
        remedy = f"The stored conversations cannot be read: {error}"
        yield CheckResult("Teams history", "was not checked", remedy, fatal=False)


@asynccontextmanager
async def _opened(database: str) -> AsyncGenerator[AsyncEngine]:
    engine = open_database(database)
    try:
        await migrate(engine)
        yield engine
    finally:
        await engine.dispose()


async def _history(history: TeamsHistory, channel: Channel) -> CheckResult:
    what = f"Teams history of {channel.name}"
    try:
        await anext(history.newest(Place(Platform.TEAMS, channel.ids[Platform.TEAMS])))
    except Unreadable as error:
        remedy = f"{error} {WITHOUT_HISTORY}"
        return CheckResult(what, "cannot be read", remedy, fatal=False)
    except MessageNotFound:
        remedy = "Correct the id of this channel in plumbline.yaml, or mention the bot there once."
        return CheckResult(what, "was not found", remedy, fatal=False)
    except ChatUnavailable as error:
        return CheckResult(
            what, "is not available now", f"{error} Check the network connection to graph.microsoft.com.", fatal=False
        )
    return CheckResult(what, "can be read through Microsoft Graph")


async def _signing_keys(cloud: Cloud, host: Host) -> CheckResult:
    from adapters.teams.authentication import issuer_of  # imports cryptography

    try:
        count = await issuer_of(cloud, host.clock, host.session).keys()
    except PlumblineError as error:
        remedy = f"{error} Without them, the bot cannot verify what Teams sends."
        return CheckResult("Teams signing keys", "cannot be fetched", remedy)
    return CheckResult("Teams signing keys", f"{count} are published")


async def _check_inbound(host: Host) -> CheckResult:
    """Check that our public address refuses a request without a token."""
    if not host.settings.public_url:
        remedy = "To check this, set PLUMBLINE_PUBLIC_URL to the address that Teams sends to."
        return CheckResult("Teams messages", "are not checked", remedy, fatal=False)
    address = f"{host.settings.public_url.rstrip('/')}{TeamsSettings.path}"
    try:
        status = (await probe(host.session, address, json={})).status
    except ChatUnavailable as error:
        remedy = f"{error} Check that `plumbline serve` runs there, and that this is its public address."
        return CheckResult("Teams messages", f"{address} does not answer", remedy)
    if status == 401:
        return CheckResult("Teams messages", f"reach {address}, which asks for a token")
    remedy = "Run `plumbline serve` there with TEAMS_APP_ID set, behind a proxy that forwards /api/messages."
    return CheckResult("Teams messages", f"{address} answers HTTP {status}", remedy)


def _package(package: Path, app_id: str) -> list[CheckResult]:
    """Compare the latest local app package, if there is one, with what this version needs."""
    if not package.exists():
        return []
    what = f"Teams app {package.name}"
    again = "Rebuild it with deploy/teams/build.py, increase `version` in its manifest, and upload it to Teams."
    try:
        with zipfile.ZipFile(package) as opened:
            manifest = json.loads(opened.open("manifest.json").read(MAX_MANIFEST))
            differences = manifest_differences(manifest, app_id)
    except (OSError, KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile):
        return [CheckResult(what, "cannot be read", again)]
    if differences:
        return [CheckResult(what, f"differs: {'; '.join(differences)}", again)]
    return [CheckResult(what, "has everything that this version needs")]


EVERYWHERE = frozenset({"personal", "team", "groupChat"})
SHARED = EVERYWHERE - {"personal"}

# The commands that Teams suggests while a person types, and where.
COMMANDS: dict[CommandName, frozenset[str]] = {
    CommandName.STATUS: EVERYWHERE,
    CommandName.TRIAGE: SHARED,
    CommandName.RCA: SHARED,
    CommandName.UPDATE: SHARED,
    CommandName.HOME: frozenset({"personal"}),
    CommandName.SETTINGS: EVERYWHERE,
    CommandName.QUIET: SHARED,
    CommandName.HELP: EVERYWHERE,
}


# Permissions to read the messages of a team's channels and of group chats. Either both or none.
CONSENTS = frozenset({("ChannelMessage.Read.Group", "Application"), ("ChatMessage.Read.Chat", "Application")})


def manifest_differences(manifest: Mapping[str, Any], app_id: str) -> list[str]:
    """Return the differences between an app manifest and the bot's requirements, one per line."""
    bot = next((bot for bot in manifest.get("bots", ()) if bot.get("botId") == app_id), None)
    if bot is None:
        return [f"bots: none has the id {app_id}"]
    differences: list[str] = []
    if set(bot.get("scopes", ())) != EVERYWHERE:
        differences.append(f"bots.scopes: {', '.join(sorted(bot.get('scopes', ())))}")
    offered = {
        (command["title"], scope)
        for listed in bot.get("commandLists", ())
        for command in listed["commands"]
        for scope in listed["scopes"]
    }
    needed = {(str(name), scope) for name, scopes in COMMANDS.items() for scope in scopes}
    differences += [f"bots.commandLists: {name} is missing in {scope}" for name, scope in sorted(needed - offered)]
    differences += [f"bots.commandLists: {name} in {scope} is not needed" for name, scope in sorted(offered - needed)]
    # Teams demands it of an app for teams since 1.25, although the published schema does not; it also opens shared channels.
    # https://learn.microsoft.com/microsoftteams/platform/resources/schema/manifest-schema#supportschannelfeatures
    if manifest.get("supportsChannelFeatures") != "tier1":
        differences.append("supportsChannelFeatures: is not tier1, so Teams refuses the app")
    return differences + _extension_differences(manifest, app_id) + _consent_differences(manifest, app_id)


def _consent_differences(manifest: Mapping[str, Any], app_id: str) -> list[str]:
    permissions = manifest.get("authorization", {}).get("permissions", {}).get("resourceSpecific", ())
    consents = {(each.get("name"), each.get("type")) for each in permissions}
    if not consents:
        return []
    differences = [f"authorization: {name} is missing" for name, _ in sorted(CONSENTS - consents)]
    differences += [f"authorization: {name} is not needed" for name, _ in sorted(consents - CONSENTS)]
    if manifest.get("webApplicationInfo", {}).get("id") != app_id:
        differences.append(f"webApplicationInfo: its id is not {app_id}")
    return differences


def _extension_differences(manifest: Mapping[str, Any], app_id: str) -> list[str]:
    commands = [
        (
            extension.get("botId"),
            command.get("id"),
            command.get("title"),
            command.get("context"),
            command.get("fetchTask"),
        )
        for extension in manifest.get("composeExtensions", ())
        for command in extension.get("commands", ())
    ]
    needed = (app_id, EXTENSION, EXTENSION_TITLE, ["message"], True)
    return (
        [] if commands == [needed] else [f"composeExtensions: “{EXTENSION_TITLE}” for messages is missing or different"]
    )
