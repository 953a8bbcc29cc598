"""The entries that the manifest of the Teams app must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.teams.dialogs import EXTENSION, EXTENSION_TITLE
from core.incidents.command import CommandName

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
