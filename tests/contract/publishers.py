"""Each kind of publisher at its server, and a report to file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

from adapters.http import SOURCE, Http
from adapters.publishers.github import GitHubFiles, GitHubIssues
from adapters.publishers.gitlab import GitLabFiles, GitLabIssues
from adapters.publishers.jira_confluence import ConfluencePages, JiraIssues
from core.model.incident import Report, marker_of
from core.ports import Publisher
from tests.fakes.publisher_servers import (
    FakeConfluencePages,
    FakeGitHub,
    FakeGitLab,
    FakeJira,
    FakeTracker,
)
from tests.fakes.tool_servers import TOKEN, reached

TEXT = "## Summary\n\n- The till was slow. (evidence 1)\n\n> pool_size 4\n\n<https://git.example/4711>"
SINCE = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
REPORT = Report(marker_of("i1", "ops"), "Till p99 latency", TEXT, "2026-03-14-till-i1", SINCE)

PUBLISHERS: dict[str, tuple[Callable[[], FakeTracker], Callable[[Http], Publisher]]] = {
    "github issue": (FakeGitHub, lambda http: GitHubIssues(http, "acme/ops")),
    "github file": (FakeGitHub, lambda http: GitHubFiles(http, "acme/ops", "postmortems")),
    "gitlab issue": (FakeGitLab, lambda http: GitLabIssues(http, "acme/ops")),
    "gitlab file": (FakeGitLab, lambda http: GitLabFiles(http, "acme/ops", "postmortems")),
    "jira cloud": (lambda: FakeJira(cloud=True), lambda http: JiraIssues(http, "OPS", "Task", cloud=True)),
    "jira": (lambda: FakeJira(cloud=False), lambda http: JiraIssues(http, "OPS", "Task", cloud=False)),
    "confluence cloud": (
        lambda: FakeConfluencePages(cloud=True),
        lambda http: ConfluencePages(http, "OPS", "", cloud=True),
    ),
    "confluence": (
        lambda: FakeConfluencePages(cloud=False),
        lambda http: ConfluencePages(http, "OPS", "12", cloud=False),
    ),
}


@asynccontextmanager
async def served(kind: str, token: str = TOKEN) -> AsyncIterator[tuple[Publisher, FakeTracker]]:
    server, publisher = PUBLISHERS[kind]
    fake = server()
    async with reached(fake, token=token) as http:
        yield publisher(replace(http, errors=SOURCE)), fake
