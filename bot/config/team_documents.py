"""Current versions of the teams' function documents, which can be edited while the bot runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from bot.config.team_sections import read_document
from bot.config.workspace import Workspace
from core.model.errors import ConfigurationError
from core.model.team import Team

log = structlog.get_logger()


async def current_teams(workspace: Workspace) -> tuple[Team, ...]:
    """Return the teams with their current documents.

    An unreadable document keeps the content from the start of the bot.
    """
    return await asyncio.to_thread(lambda: tuple(_current(team, workspace) for team in workspace.teams))


def _current(team: Team, workspace: Workspace) -> Team:
    file = workspace.team_documents.get(team.id)
    if file is None:
        return team
    try:
        return replace(team, document=read_document(team.id, file))
    except ConfigurationError as error:
        log.warning("team_document_not_read", team=team.id, error=str(error))
        return team
