"""Wiring of knowledge sources from plumbline.yaml."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp

from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.folder import FolderSource
from adapters.sources.past_incidents import PastIncidentSource
from bot.config import source_sections as sections
from bot.config.settings import Settings, named_secret
from bot.config.workspace import Workspace
from core.knowledge.redactor import VERSION as REDACTION
from core.ports import ChangingSource, Clock, KnowledgeSource

if TYPE_CHECKING:
    from adapters.http import Http
    from adapters.sources.git_repository import GitRepositorySource


def open_source(
    section: sections.SourceSection, settings: Settings, session: aiohttp.ClientSession, clock: Clock
) -> KnowledgeSource | ChangingSource:
    """Return the source of a section. Raises ConfigurationError for a missing secret."""
    match section:
        case sections.FolderSection():
            return FolderSource(section.name, section.path, section.url, frozenset(section.readers))
        case sections.ChatThreadsSection():
            return ChatThreadSource(section.name, section.path)
        case sections.PastIncidentsSection():
            return PastIncidentSource(section.name, section.path, frozenset(section.readers))
        case sections.SlackExportSection():
            from adapters.sources.slack_export import SlackExportSource

            return SlackExportSource(section.name, section.path, section.url)
        case sections.TeamsExportSection():
            from adapters.sources.teams_export import TeamsExportSource

            return TeamsExportSource(section.name, section.path)
        case sections.GitRepositorySection():
            return open_repository(section, settings)
        case sections.ConfluenceSection():
            return _confluence(section, session)
        case sections.AzureWikiSection():
            from adapters.http import basic, source_server
            from adapters.sources.azure_wiki import AzureWikiSource

            token = basic("", named_secret(section.token_env, section.name))
            server = source_server(f"Azure DevOps at {section.url}", section.url, session, token)
            return AzureWikiSource(section.name, server, section.project, section.wiki, frozenset(section.readers))
        case sections.SlackChannelsSection():
            return _slack(section, settings, session, clock)
        case sections.TeamsChannelsSection():
            return _teams(section, settings, session, clock)
        case sections.SharePointSection():
            return _sharepoint(section, session, clock)


def source_setting(workspace: Workspace, name: str) -> str:
    """Return a digest that changes exactly when the configuration of a source or of the redaction changes."""
    sections = [section.model_dump_json() for section in workspace.sources if section.name == name]
    parts = (REDACTION, *sections, *sorted(workspace.private_names))
    return hashlib.blake2b("\x00".join(parts).encode(), digest_size=8).hexdigest()


def open_repository(section: sections.GitRepositorySection, settings: Settings) -> GitRepositorySource:
    """Return the repository of a section. Raises ConfigurationError."""
    from adapters.sources.git_repository import GitRepositorySource, Repository

    return GitRepositorySource(
        section.name,
        Repository(
            clone=section.path or settings.data_dir.absolute() / "repositories" / f"{section.name}.git",
            url=section.url,
            branch=section.branch,
            links=section.links,
            token=named_secret(section.token_env, section.name) if section.token_env else "",
            readers=frozenset(section.readers),
        ),
    )


def _confluence(section: sections.ConfluenceSection, session: aiohttp.ClientSession) -> ChangingSource:
    from adapters.http import Token, basic, source_server
    from adapters.sources.confluence import ConfluenceSource
    from adapters.sources.confluence_pages import Access

    secret = named_secret(section.token_env, section.name)
    token = basic(section.email, secret) if section.email else Token(f"Bearer {secret}")
    server = source_server(f"Confluence at {section.url}", section.url, session, token)
    identities = {key: frozenset(readers) for key, readers in section.identities.items()}
    access = Access(frozenset(section.readers), identities)
    return ConfluenceSource(section.name, server, section.url, section.spaces, access)


def _slack(
    section: sections.SlackChannelsSection, settings: Settings, session: aiohttp.ClientSession, clock: Clock
) -> ChangingSource:
    from adapters.slack.client import slack_reader
    from adapters.sources.slack_channels import SlackChannelsSource

    client = slack_reader(named_secret(section.token_env, section.name), settings.slack_api_url, session)
    return SlackChannelsSource(section.name, client, section.channels, clock)


def _teams(
    section: sections.TeamsChannelsSection, settings: Settings, session: aiohttp.ClientSession, clock: Clock
) -> ChangingSource:
    from adapters.sources.teams_channels import TeamsChannelsSource

    return TeamsChannelsSource(section.name, _graph(section, session), section.teams, clock, settings.teams_app_id)


def _sharepoint(section: sections.SharePointSection, session: aiohttp.ClientSession, clock: Clock) -> ChangingSource:
    from adapters.sources.sharepoint import SharePointSource

    # Graph redirects downloads to the site's own host.
    hosts = frozenset(urlsplit(site).netloc for site in section.sites)
    return SharePointSource(
        section.name,
        replace(_graph(section, session), elsewhere=hosts),
        section.sites,
        clock,
        libraries=section.libraries,
        page_readers=frozenset(section.page_readers),
        identities={key: frozenset(readers) for key, readers in section.identities.items()},
    )


def _graph(section: sections.GraphSection, session: aiohttp.ClientSession) -> Http:
    from adapters.http import source_server
    from adapters.microsoft_graph.credentials import GRAPH_URL, GraphCredentials

    secret = named_secret(section.client_secret_env, section.name)
    credentials = GraphCredentials(section.tenant_id, section.client_id, secret, session)
    return source_server("Microsoft Graph", GRAPH_URL, session, credentials)
