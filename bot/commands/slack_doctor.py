"""`plumbline doctor slack`: check the Slack app's token, scopes, events, channels and manifest."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
from pydantic import BaseModel

from adapters.slack.needs import AGENT_EVENTS, ASSISTANT_EVENTS, COMMANDS, EVENTS, SCOPES, SHORTCUTS
from bot.config.settings import Settings
from bot.config.workspace import Workspace
from bot.wiring.finding import Finding
from core.model.conversation import Platform

CHALLENGE = "plumbline-doctor"
TO_AGENT = (
    "In the app settings, choose Agent, then update the app; then paste deploy/slack/manifest.yaml and reinstall."
)


async def check_slack(
    settings: Settings, workspace: Workspace, session: aiohttp.ClientSession
) -> AsyncIterator[Finding]:
    """Check the token, the scopes, the delivery of events, the configured channels and the app manifest."""
    if settings.slack_bot_token is None:
        yield Finding("Slack", "off (SLACK_BOT_TOKEN is not set)")
        return
    slack = _Slack(settings.slack_api_url, settings.slack_bot_token.get_secret_value(), session)
    try:
        answer, headers = await slack.ask("auth.test")
        yield _token(answer)
        if answer.get("ok"):
            for finding in _scopes(headers):
                yield finding
            yield await _way_in(settings, slack, session)
            async for finding in _channels(workspace, slack):
                yield finding
            if settings.slack_config_token is not None:
                yield await _manifest(slack, answer, settings.slack_config_token.get_secret_value())
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        mend = f"{settings.slack_api_url}: {error or 'no answer'}. Check the network and SLACK_API_URL."
        yield Finding("Slack", "does not answer", mend)


class _Slack:
    """A Slack Web API client without retries."""

    def __init__(self, url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._token = token
        self._session = session

    async def ask(self, method: str, token: str = "", **arguments: str) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Return the body and the headers of the response."""
        authorization = {"Authorization": f"Bearer {token or self._token}"}
        async with self._session.post(f"{self._url}{method}", data=arguments, headers=authorization) as response:
            return await response.json(), response.headers


def _token(answer: Mapping[str, Any]) -> Finding:
    if not answer.get("ok"):
        mend = "Install the app anew and copy its bot token to SLACK_BOT_TOKEN."
        return Finding("Slack token", f"is refused: {answer.get('error')}", mend)
    return Finding("Slack token", f"is {answer.get('user')} in {answer.get('team')}")


def _scopes(headers: Mapping[str, str]) -> list[Finding]:
    granted = {scope.strip() for scope in headers.get("X-OAuth-Scopes", "").split(",")} - {""}
    if not granted:
        return [Finding("Slack scopes", "are not told", "Compare them with deploy/slack/manifest.yaml.", fatal=False)]
    missing, more = sorted(SCOPES.keys() - granted), sorted(granted - SCOPES.keys())
    findings: list[Finding] = []
    if missing:
        lost = "; ".join(f"{scope} ({SCOPES[scope]})" for scope in missing)
        findings.append(Finding("Slack scopes", "are missing", f"Add and reinstall the app: {lost}."))
    if more:
        mend = f"They are not needed, and can be taken from the app: {', '.join(more)}."
        findings.append(Finding("Slack scopes", "are more than the manifest asks for", mend, fatal=False))
    return findings or [Finding("Slack scopes", "are those of the manifest")]


async def _way_in(settings: Settings, slack: _Slack, session: aiohttp.ClientSession) -> Finding:
    """Check Socket Mode, or send a signed URL verification request to the public address, as Slack does."""
    if settings.slack_app_token is not None:
        answer, _ = await slack.ask("apps.connections.open", settings.slack_app_token.get_secret_value())
        if answer.get("ok"):
            return Finding("Slack events", "come through Socket Mode")
        mend = "Make an app-level token with connections:write, and turn Socket Mode on in the app."
        return Finding("Slack events", f"Socket Mode is refused: {answer.get('error')}", mend)
    if settings.slack_signing_secret is None:
        mend = "Set SLACK_SIGNING_SECRET (HTTP) or SLACK_APP_TOKEN (Socket Mode)."
        return Finding("Slack events", "cannot be received", mend)
    if not settings.public_url:
        mend = "Set PLUMBLINE_PUBLIC_URL to the address that Slack sends to, and this checks it."
        return Finding("Slack events", "come over HTTP; the way is not checked", mend, fatal=False)
    address = f"{settings.public_url.rstrip('/')}/slack/events"
    return await _address(address, settings.slack_signing_secret.get_secret_value(), session)


async def _address(address: str, secret: str, session: aiohttp.ClientSession) -> Finding:
    body = json.dumps({"type": "url_verification", "challenge": CHALLENGE, "token": "none"})
    timestamp = str(int(time.time()))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": f"v0={digest}",
    }
    try:
        async with session.post(address, data=body, headers=headers) as response:
            status, said = response.status, await response.text()
    except (aiohttp.ClientError, TimeoutError) as error:
        mend = f"{error or 'No answer'}. Is `plumbline serve` running there, and the address the public one?"
        return Finding("Slack events", f"{address} does not answer", mend)
    if status == 200 and CHALLENGE in said:
        return Finding("Slack events", f"reach {address}")
    if status == 401:
        mend = "SLACK_SIGNING_SECRET is another one there, or its clock is more than five minutes off."
        return Finding("Slack events", f"{address} refuses the signature", mend)
    mend = "Something else answers there: check the address and the proxy in front of it."
    return Finding("Slack events", f"{address} answers {status}", mend)


async def _channels(workspace: Workspace, slack: _Slack) -> AsyncIterator[Finding]:
    """Report channels without the bot, and channels that are private only in Slack, whose incidents would be public."""
    for channel in workspace.channels:
        if not (id_ := channel.ids.get(Platform.SLACK)):
            continue
        answer, _ = await slack.ask("conversations.info", channel=id_)
        known: dict[str, Any] = answer.get("channel") or {}
        if not answer.get("ok") or known.get("is_member") is False:
            mend = f"Invite it there with /invite, or correct the id {id_} in plumbline.yaml."
            yield Finding(f"channel {channel.name}", "does not have the bot in it", mend, fatal=False)
        elif known.get("is_private") and not channel.private:
            mend = "Set `private: true` for it in plumbline.yaml, or its incidents are named in other channels."
            yield Finding(f"channel {channel.name}", "is private in Slack", mend)


async def _manifest(slack: _Slack, identity: Mapping[str, Any], config_token: str) -> Finding:
    """Compare the app's manifest with the required one. Needs a configuration token of the app's owner."""
    bot, _ = await slack.ask("bots.info", bot=str(identity.get("bot_id", "")))
    known: dict[str, Any] = bot.get("bot") or {}
    app_id = str(known.get("app_id", ""))
    answer, _ = await slack.ask("apps.manifest.export", config_token, app_id=app_id)
    if not answer.get("ok"):
        mend = "Make a new configuration token at https://api.slack.com/apps and set SLACK_CONFIG_TOKEN; they live 12 hours."
        return Finding("Slack manifest", f"cannot be read: {answer.get('error')}", mend, fatal=False)
    manifest = AppManifest.model_validate(answer.get("manifest") or {})
    missing = sorted(missing_in(manifest))
    if missing:
        mend = f"Bring it in line with deploy/slack/manifest.yaml: {', '.join(missing)}."
        return Finding("Slack manifest", "lacks what the bot listens to", mend)
    if manifest.is_assistant:
        return Finding("Slack manifest", "has the assistant experience, which Slack will end", TO_AGENT, fatal=False)
    return Finding("Slack manifest", "has all that the bot listens to")


class _Home(BaseModel):
    home_tab_enabled: bool = False


class _Command(BaseModel):
    command: str = ""


class _Shortcut(BaseModel):
    callback_id: str = ""


class _Features(BaseModel):
    assistant_view: dict[str, Any] | None = None
    agent_view: dict[str, Any] | None = None
    app_home: _Home = _Home()
    slash_commands: tuple[_Command, ...] = ()
    shortcuts: tuple[_Shortcut, ...] = ()


class _Subscriptions(BaseModel):
    bot_events: frozenset[str] = frozenset()


class _Interactivity(BaseModel):
    is_enabled: bool = False


class _AppSettings(BaseModel):
    event_subscriptions: _Subscriptions = _Subscriptions()
    interactivity: _Interactivity = _Interactivity()


class AppManifest(BaseModel):
    """The parts of an app manifest that the bot requires."""

    features: _Features = _Features()
    settings: _AppSettings = _AppSettings()

    @property
    def is_assistant(self) -> bool:
        """Return whether the app has the older assistant experience."""
        return self.features.assistant_view is not None and self.features.agent_view is None


def missing_in(manifest: AppManifest) -> set[str]:
    """Return the requirements of the bot that a manifest does not meet, in words."""
    features, settings = manifest.features, manifest.settings
    commands = {each.command for each in features.slash_commands}
    shortcuts = {each.callback_id for each in features.shortcuts}
    events = EVENTS - AGENT_EVENTS | ASSISTANT_EVENTS if manifest.is_assistant else EVENTS
    return {
        *(f"event {event}" for event in events - settings.event_subscriptions.bot_events),
        *(f"command {command}" for command in COMMANDS - commands),
        *(f"shortcut {shortcut}" for shortcut in SHORTCUTS - shortcuts),
        *(() if features.app_home.home_tab_enabled else ("the home tab",)),
        *(() if settings.interactivity.is_enabled else ("interactivity",)),
    }
