"""What the app needs of Teams: what its manifest has to say, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.teams.dialogs import EXTENSION, EXTENSION_TITLE
from core.command import CommandName

EVERYWHERE = frozenset({"personal", "team", "groupChat"})
SHARED = EVERYWHERE - {"personal"}

# The commands that Teams offers while somebody types, and where.
COMMANDS: dict[CommandName, frozenset[str]] = {
    CommandName.STATUS: EVERYWHERE,
    CommandName.TRIAGE: SHARED,
    CommandName.RCA: SHARED,
    CommandName.HOME: frozenset({"personal"}),
    CommandName.SETTINGS: EVERYWHERE,
    CommandName.QUIET: SHARED,
    CommandName.HELP: EVERYWHERE,
}


def manifest_differences(manifest: Mapping[str, Any], app_id: str) -> list[str]:
    """What an app manifest says otherwise than this bot needs it, each in one line."""
    bot = next((bot for bot in manifest.get("bots", ()) if bot.get("botId") == app_id), None)
    if bot is None:
        return [f"bots: none of them is {app_id}"]
    found: list[str] = []
    if set(bot.get("scopes", ())) != EVERYWHERE:
        found.append(f"bots.scopes: {', '.join(sorted(bot.get('scopes', ())))}")
    offered = {
        (command["title"], scope)
        for listed in bot.get("commandLists", ())
        for command in listed["commands"]
        for scope in listed["scopes"]
    }
    needed = {(str(name), scope) for name, scopes in COMMANDS.items() for scope in scopes}
    found += [f"bots.commandLists: {name} is missing in {scope}" for name, scope in sorted(needed - offered)]
    found += [f"bots.commandLists: {name} in {scope} is none of ours" for name, scope in sorted(offered - needed)]
    return found + _extension_differences(manifest, app_id)


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
        [] if commands == [needed] else [f"composeExtensions: “{EXTENSION_TITLE}” for messages is missing or another"]
    )
