"""`plumbline doctor slack`: check the Slack app's token, scopes, events, channels and manifest.

The scopes and events that the app needs are those of `deploy/slack/manifest.yaml`.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import aiohttp
from pydantic import SecretStr
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from adapters.chat import DOCTOR, CheckResult, probe, secret
from adapters.http import ONCE
from adapters.section import Host
from adapters.slack.client import ask, slack_client
from adapters.slack.inbound import COMMAND
from adapters.slack.interactions import SHORTCUT
from adapters.slack.organisation import check_organisation
from adapters.slack.settings import SlackSettings
from core.model.conversation import Channel, Platform
from core.model.errors import ChatUnavailable


async def check_slack(chat: SlackSettings, host: Host, channels: Sequence[Channel]) -> AsyncIterator[CheckResult]:
    """Check the token, the scopes, the delivery of events, the configured channels and the app manifest."""

    def client(token: SecretStr | None) -> AsyncWebClient:
        return slack_client(secret(token), chat.api_url, host.session, ONCE)

    slack = client(chat.bot_token)
    try:
        answer, headers = await ask(slack, "auth.test")
        yield _token(answer, secret(chat.bot_token))
        if answer.get("ok"):
            for finding in (*_scopes(headers), *await check_organisation(slack, answer)):
                yield finding
            yield await _check_inbound(chat, host, client)
            async for finding in _channels(channels, slack):
                yield finding
            if chat.config_token is not None:
                yield await _manifest(slack, answer, client(chat.config_token))
    except ChatUnavailable as error:
        yield CheckResult("Slack", "does not answer", f"{error} Check the network and SLACK_API_URL ({chat.api_url}).")


def _token(answer: Mapping[str, Any], token: str) -> CheckResult:
    if token.startswith("xoxe.") or answer.get("error") == "token_expired":
        remedy = (
            "Plumbline does not renew tokens: make an app without token rotation, which cannot be turned off again."
        )
        return CheckResult("Slack token", "expires after twelve hours", remedy)
    if not answer.get("ok"):
        remedy = "Reinstall the app and copy its bot token to SLACK_BOT_TOKEN."
        return CheckResult("Slack token", f"is refused: {answer.get('error')}", remedy)
    return CheckResult("Slack token", f"is {answer.get('user')} in {answer.get('team')}")


def _scopes(headers: Mapping[str, str]) -> list[CheckResult]:
    granted = {scope.strip() for scope in headers.get("X-OAuth-Scopes", "").split(",")} - {""}
    if not granted:
        return [
            CheckResult("Slack scopes", "are not known", "Compare them with deploy/slack/manifest.yaml.", fatal=False)
        ]
    missing, more = sorted(SCOPES.keys() - granted), sorted(granted - SCOPES.keys())
    findings: list[CheckResult] = []
    if missing:
        lost = "; ".join(f"{scope} ({SCOPES[scope]})" for scope in missing)
        findings.append(CheckResult("Slack scopes", "are missing", f"Add these scopes and reinstall the app: {lost}."))
    if more:
        remedy = f"Remove what the bot does not need: {', '.join(more)}."
        findings.append(CheckResult("Slack scopes", "are more than the manifest asks for", remedy, fatal=False))
    return findings or [CheckResult("Slack scopes", "are those of the manifest")]


async def _check_inbound(chat: SlackSettings, host: Host, client: Callable[[SecretStr], AsyncWebClient]) -> CheckResult:
    """Check Socket Mode, or send to our own address the signed request with which Slack verifies one."""
    if chat.app_token is not None:
        answer, _ = await ask(client(chat.app_token), "apps.connections.open")
        if answer.get("ok"):
            return CheckResult("Slack events", "arrive through Socket Mode")
        remedy = "Create an app-level token with connections:write, and turn Socket Mode on in the app."
        return CheckResult("Slack events", f"Socket Mode is refused: {answer.get('error')}", remedy)
    if chat.signing_secret is None:
        remedy = "Set SLACK_SIGNING_SECRET (HTTP) or SLACK_APP_TOKEN (Socket Mode)."
        return CheckResult("Slack events", "cannot be received", remedy)
    if not host.settings.public_url:
        remedy = "To check this, set PLUMBLINE_PUBLIC_URL to the address that Slack sends to."
        return CheckResult("Slack events", "arrive over HTTP; not checked", remedy, fatal=False)
    address = f"{host.settings.public_url.rstrip('/')}{chat.path}"
    return await _address(address, chat.signing_secret.get_secret_value(), host.session)


async def _address(address: str, secret: str, session: aiohttp.ClientSession) -> CheckResult:
    body = json.dumps({"type": "url_verification", "challenge": DOCTOR, "token": "none"})
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body) or "",
    }
    try:
        answer = await probe(session, address, data=body, headers=headers)
    except ChatUnavailable as error:
        remedy = f"{error} Check that `plumbline serve` runs there, and that this is its public address."
        return CheckResult("Slack events", f"{address} does not answer", remedy)
    status = answer.status
    if status == 200 and DOCTOR.encode() in answer.body:
        return CheckResult("Slack events", f"reach {address}")
    if status == 401:
        remedy = "The bot there has a different SLACK_SIGNING_SECRET, or its clock is more than five minutes off."
        return CheckResult("Slack events", f"{address} refuses the signature", remedy)
    remedy = "Another program answers there: check the address and the proxy in front of it."
    return CheckResult("Slack events", f"{address} answers {status}", remedy)


async def _channels(channels: Sequence[Channel], slack: AsyncWebClient) -> AsyncIterator[CheckResult]:
    """Yield channels without the bot, and those that are private only in Slack: others would see their names."""
    for channel in channels:
        if not (id_ := channel.ids.get(Platform.SLACK)):
            continue
        answer, _ = await ask(slack, "conversations.info", channel=id_)
        details: dict[str, Any] = answer.get("channel") or {}
        if not answer.get("ok") or details.get("is_member") is False:
            remedy = f"Invite the bot with /invite, or correct the id {id_} in plumbline.yaml."
            yield CheckResult(f"channel {channel.name}", "does not have the bot in it", remedy, fatal=False)
        elif details.get("is_private") and not channel.private:
            remedy = "Set `private: true` for it in plumbline.yaml. Otherwise, other channels show its name."
            yield CheckResult(f"channel {channel.name}", "is private in Slack", remedy)


async def _manifest(slack: AsyncWebClient, identity: Mapping[str, Any], owner: AsyncWebClient) -> CheckResult:
    """Compare the app's manifest with the requirements, through a configuration token of the app's owner."""
    bot, _ = await ask(slack, "bots.info", bot=str(identity.get("bot_id", "")))
    application: dict[str, Any] = bot.get("bot") or {}
    answer, _ = await ask(owner, "apps.manifest.export", app_id=str(application.get("app_id", "")))
    if not answer.get("ok"):
        remedy = "Create a configuration token at https://api.slack.com/apps and set SLACK_CONFIG_TOKEN. A token is valid for 12 hours."
        return CheckResult("Slack manifest", f"cannot be read: {answer.get('error')}", remedy, fatal=False)
    manifest: dict[str, Any] = answer.get("manifest") or {}
    missing = sorted(missing_in(manifest))
    if missing:
        remedy = f"Add these entries of deploy/slack/manifest.yaml: {', '.join(missing)}."
        return CheckResult("Slack manifest", "lacks what the bot needs", remedy)
    return CheckResult("Slack manifest", "has everything that the bot needs")


def missing_in(manifest: Mapping[str, Any]) -> set[str]:
    """Return the requirements of the bot that an app manifest does not meet, in words."""
    features, settings = _part(manifest, "features"), _part(manifest, "settings")
    commands = {each.get("command") for each in features.get("slash_commands") or ()}
    shortcuts = {each.get("callback_id") for each in features.get("shortcuts") or ()}
    subscribed = frozenset(_part(settings, "event_subscriptions").get("bot_events") or ())
    return {
        *(f"event {event}" for event in EVENTS - subscribed),
        *(f"command {command}" for command in COMMANDS - commands),
        *(f"shortcut {shortcut}" for shortcut in SHORTCUTS - shortcuts),
        *(() if _part(features, "app_home").get("home_tab_enabled") else ("the home tab",)),
        *(() if _part(settings, "interactivity").get("is_enabled") else ("interactivity",)),
    }


def _part(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return manifest.get(name) or {}


# Scope → its purpose.
SCOPES = {
    "app_mentions:read": "mentions",
    "assistant:write": "suggested prompts in the conversation with the app",
    "channels:history": "threads, alerts of other bots, edited and deleted questions, its own posts after a crash",
    "channels:read": "whether a channel is public, private or shared with others, and who is in it",
    "chat:write": "everything it says",
    "commands": "the slash command and the message shortcut",
    "files:read": "the snippets that Slack makes of long pastes, and text files",
    "groups:history": "the same as channels:history, in private channels that it was invited to",
    "groups:read": "the same as channels:read, for private channels",
    "im:history": "direct messages",
    "im:read": "whether a conversation is a direct message",
    "mpim:history": "group messages",
    "mpim:read": "who is in a group message",
    "reactions:read": "reactions to its answers as feedback",
    "users:read": "who is a guest, and whose page is opened",
}

EVENTS = frozenset(
    {
        "app_context_changed",  # of an app with `agent_view`
        "app_home_opened",
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "reaction_added",
        "reaction_removed",
    }
)

COMMANDS = frozenset({COMMAND})
SHORTCUTS = frozenset({SHORTCUT})
