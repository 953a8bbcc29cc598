"""Each kind of publisher at its server, and a report to file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from adapters.http import Http
from adapters.publishers.section import DefinedTarget, target_sections
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

Opened = Callable[[Http], Publisher]


def target(kind: str, server: str = "", **settings: str) -> Opened:
    """Return what opens a target of a kind. `server` is where it says that it is, if not where it is."""
    definition = target_sections()[kind].definition
    defaults = {name: each.default for name, each in definition.settings.items() if each.default}

    def opened(http: Http) -> Publisher:
        cloud = definition.model_copy(update={"cloud": "127.0.0.1" if server == "cloud" else ".atlassian.net"})
        return DefinedTarget(http, cloud, {**defaults, **settings})

    return opened


ACME = {"repository": "acme/ops", "owner": "acme"}
PUBLISHERS: dict[str, tuple[Callable[[], FakeTracker], Opened]] = {
    "github issue": (FakeGitHub, target("github_issue", **ACME)),
    "github file": (FakeGitHub, target("github_file", **ACME)),
    "gitlab issue": (FakeGitLab, target("gitlab_issue", project="acme/ops")),
    "gitlab file": (FakeGitLab, target("gitlab_file", project="acme/ops")),
    "jira cloud": (lambda: FakeJira(cloud=True), target("jira_issue", "cloud", project="OPS")),
    "jira": (lambda: FakeJira(cloud=False), target("jira_issue", project="OPS")),
    "confluence cloud": (lambda: FakeConfluencePages(cloud=True), target("confluence_page", "cloud", space="OPS")),
    "confluence": (lambda: FakeConfluencePages(cloud=False), target("confluence_page", space="OPS", parent="12")),
}


@asynccontextmanager
async def served(kind: str, token: str = TOKEN) -> AsyncIterator[tuple[Publisher, FakeTracker]]:
    server, publisher = PUBLISHERS[kind]
    fake = server()
    async with reached(fake, token=token) as http:
        yield publisher(http), fake
