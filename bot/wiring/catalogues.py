"""Wiring of teams: catalogues, over which plumbline.yaml takes precedence, and on-call schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog
from pydantic import ValidationError

from adapters.catalogues.files import CatalogueFiles, FolderFiles
from adapters.catalogues.section import CatalogueSection
from adapters.readers.sections import OnCallSystem
from adapters.section import Host
from bot.config.team_sections import MentionSection
from bot.config.workspace import Workspace
from core.model.catalogue import Catalogue, merged_dependencies, merged_teams, named_code, spelled_alike
from core.model.conversation import Platform
from core.model.errors import ConfigurationError, SourceUnavailable
from core.model.team import TAG, Team, TeamRotas
from core.ports import OnCall

DEADLINE = 60.0  # seconds per catalogue at start

log = structlog.get_logger()


async def with_catalogues(workspace: Workspace, host: Host) -> Workspace:
    """Read the catalogues at start. One that cannot be read is logged and skipped."""
    read = [(section, await _read_if_there(section, workspace, host)) for section in workspace.catalogues]
    catalogues = [(section, catalogue) for section, catalogue in read if catalogue is not None]
    groups = [team for section, catalogue in catalogues for team in _called(section, catalogue)]
    teams = merged_teams(workspace.teams, [_reachable(team, workspace) for team in groups])
    dependencies = merged_dependencies(workspace.dependencies, [catalogue.dependencies for _, catalogue in catalogues])
    teams, dependencies = spelled_alike(teams, dependencies)
    code = [named_code(each, teams, section.team_ids) for section, catalogue in catalogues for each in catalogue.code]
    written = {service for team in workspace.teams for service in team.services}
    origins = {
        service: section.place
        for section, catalogue in reversed(catalogues)
        for team in catalogue.teams
        for service in team.services - written
    }
    update = {"teams": teams, "dependencies": dependencies, "code": tuple(code), "origins": origins}
    return workspace.model_copy(update=update)


async def read_catalogue(section: CatalogueSection, workspace: Workspace, host: Host) -> Catalogue:
    """Read the catalogue of a section. Raises SourceUnavailable, and ConfigurationError for a missing token."""
    return await section.read(_files(section, workspace, host))


async def _read_if_there(section: CatalogueSection, workspace: Workspace, host: Host) -> Catalogue | None:
    try:
        async with asyncio.timeout(DEADLINE):
            return await read_catalogue(section, workspace, host)
    except (SourceUnavailable, TimeoutError) as error:
        log.warning("catalogue_not_read", catalogue=section.place, error=str(error) or "too slow")
        return None


def _files(section: CatalogueSection, workspace: Workspace, host: Host) -> CatalogueFiles:
    if section.path is not None:
        return FolderFiles(section.path)
    return next(source for source in workspace.sources if source.name == section.source).files(host)


def _called(section: CatalogueSection, catalogue: Catalogue) -> Sequence[Team]:
    """Return the teams with the ids that the section assigns."""
    given = {
        name: team for owner, team in section.team_ids.items() for name in (owner.rpartition("/")[2], owner.lstrip("@"))
    }
    return [replace(team, id=given.get(team.id, team.id)) for team in catalogue.teams]


def _reachable(team: Team, workspace: Workspace) -> Team:
    """Return the team without an unknown channel and without invalid mentions."""
    channel = team.channel
    if channel and channel not in {each.name for each in workspace.channels}:
        log.warning("catalogue_channel_unknown", team=team.id, channel=channel)
        channel = ""
    return replace(team, channel=channel, mentions=_checked(team))


def _checked(team: Team) -> dict[Platform, str]:
    in_teams = team.mentions.get(Platform.TEAMS, "")
    is_tag = in_teams.startswith(TAG)
    try:
        return MentionSection(
            slack=team.mentions.get(Platform.SLACK) or None,
            teams=None if is_tag else in_teams or None,
            teams_tag=in_teams.removeprefix(TAG) if is_tag else None,
        ).ids
    except ValidationError as error:
        log.warning("catalogue_mention_left_out", team=team.id, error=error.errors()[0]["msg"])
        return {}


def open_on_call(sections: Sequence[OnCallSystem], teams: Sequence[Team], host: Host) -> tuple[OnCall, ...]:
    """Return the schedules in the order of plumbline.yaml, with its own rotas last.

    Raises ConfigurationError for a missing token or an unknown team.
    """
    schedules = [section.open(host) for section in sections]
    team_ids = {team.id for team in teams}
    for schedule in schedules:
        if unknown := sorted(schedule.teams - team_ids):
            raise ConfigurationError(f"{schedule.name} names the team {unknown[0]}, which does not exist.")
    return (*schedules, TeamRotas(teams))
