"""Wiring of the targets in which people may file issues and postmortems."""

from __future__ import annotations

from urllib.parse import urlsplit

import aiohttp

from adapters.http import SOURCE, Http, Token, basic
from adapters.publishers.atlassian import ConfluencePages, JiraIssues
from adapters.publishers.github import GitHubFiles, GitHubIssues
from adapters.publishers.gitlab import GitLabFiles, GitLabIssues
from bot.config import filing_sections as sections
from bot.config.settings import named_secret
from core.ports import Publisher

CLOUD = ".atlassian.net"  # end of the host names of Atlassian's cloud
TIMEOUT = 20.0  # seconds for one answer
GITHUB = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def open_publisher(section: sections.FilingSection, session: aiohttp.ClientSession) -> Publisher:
    """Open the target that one section describes. Raises ConfigurationError if its token is not set."""
    token = named_secret(section.token_env, section.name)
    email = getattr(section, "email", "")
    credentials = basic(email, token) if email else Token(f"Bearer {token}")
    headers = GITHUB if section.kind.startswith("github") else {}
    system = f"{section.name} at {section.url}"
    http = Http(system, section.url, session, credentials, headers, errors=SOURCE, timeout=TIMEOUT)
    cloud = (urlsplit(section.url).hostname or "").endswith(CLOUD)
    match section:
        case sections.GitHubIssueSection():
            return GitHubIssues(http, section.repository)
        case sections.GitLabIssueSection():
            return GitLabIssues(http, section.project)
        case sections.JiraIssueSection():
            return JiraIssues(http, section.project, section.issue_type, cloud)
        case sections.ConfluencePageSection():
            return ConfluencePages(http, section.space, section.parent, cloud)
        case sections.GitHubFileSection():
            return GitHubFiles(http, section.repository, section.folder)
        case sections.GitLabFileSection():
            return GitLabFiles(http, section.project, section.folder)
