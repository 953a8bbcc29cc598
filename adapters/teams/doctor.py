"""`plumbline doctor teams`: check the Teams app's credentials, services, channels, messages and package."""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path

from adapters.chat import CheckResult, probe
from adapters.microsoft import TOLD_BEFORE
from adapters.section import Host
from adapters.store.conversations import SqlTeamsConversations
from adapters.store.database import migrated
from adapters.teams.app_package import PACKAGE, differences, manifest_in
from adapters.teams.connector import NEVER_MET, NOT_OURS, PUBLIC_CLOUD, Cloud, Connector, home_of
from adapters.teams.history import TeamsHistory, Unreadable
from adapters.teams.settings import TeamsSettings
from core.model.conversation import Channel, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError

SERVICE = "https://smba.trafficmanager.net/teams/"  # the global connector service
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
        connector = Connector(token, host.session)
        async for finding in _service(service_url, connector, named):
            yield finding
        async for finding in _histories(chat, host, named, connector, cloud):
            yield finding
    except ChatUnavailable as error:
        yield CheckResult("Teams token", "is not issued", f"{error} Check the network connection to {cloud.login_url}.")
    except PlumblineError as error:
        clouds = "Plumbline works in Microsoft's public cloud and GCC, not in GCC High, DoD or that of China."
        yield CheckResult("Teams token", "is refused", f"{error} {clouds}")
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
                remedy = "Add the app to the team of this channel, or correct its id in plumbline.yaml; one that was deleted is gone."
                yield CheckResult(f"Teams channel {channel.name}", f"does not admit the app (HTTP {status})", remedy)
            else:
                yield CheckResult(f"Teams channel {channel.name}", "is open to the app")
    except ChatUnavailable as error:
        remedy = f"{error} Check the network connection. If there is a proxy, allow this host in it."
        yield CheckResult("Teams service", f"{service_url} does not answer", remedy)


async def _histories(
    chat: TeamsSettings, host: Host, channels: Sequence[Channel], connector: Connector, cloud: Cloud
) -> AsyncIterator[CheckResult]:
    """Check that the configured channels have an address, and that Microsoft Graph can read them."""
    if not channels:
        return
    try:
        async with migrated(host.settings.database) as engine:
            references = SqlTeamsConversations(engine)
            history = chat.history(connector, references, cloud, host)
            for channel in channels:
                place = Place(Platform.TEAMS, channel.ids[Platform.TEAMS])
                if await home_of(references, place, chat.tenant_ids, cloud) is None:
                    remedy = NEVER_MET.format(channel=channel.name)
                    yield CheckResult(f"Teams address of {channel.name}", "is not known, so incidents wait", remedy)
                else:
                    yield await _history(history, channel, place)
    except (PlumblineError, OSError) as error:
        remedy = f"The stored conversations cannot be read: {error}"
        yield CheckResult("Teams history", "was not checked", remedy, fatal=False)


async def _history(history: TeamsHistory, channel: Channel, place: Place) -> CheckResult:
    what = f"Teams history of {channel.name}"
    try:
        await anext(history.newest(place))
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
    what, again = f"Teams app {package.name}", "Make it again with `plumbline teams-package`, and upload it to Teams."
    try:
        manifest = manifest_in(package)
        differing = differences(manifest, app_id)
    except (OSError, KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile):
        return [CheckResult(what, "cannot be read", again)]
    if differing:
        newer = f"Its version has to be higher than {manifest.get('version')} (--version)."
        return [CheckResult(what, f"differs in {', '.join(differing)}", f"{again} {newer}")]
    return [CheckResult(what, "has everything that this version needs")]
