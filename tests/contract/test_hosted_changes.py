"""Commits and deployments of GitHub, GitLab and Azure DevOps as changes, over servers that answer as documented."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.http import Http
from adapters.tools.azure_devops import AzureDevOps
from adapters.tools.ci import HostedChanges, RepositoryHost
from adapters.tools.github import GitHub
from adapters.tools.gitlab import GitLab
from core.model.errors import ToolUnavailable
from core.ports import Partial
from tests.fakes.change_servers import SHA, FakeAzureDevOps, FakeGitHub, FakeGitLab
from tests.fakes.recorded_reader import HOUR
from tests.fakes.tool_servers import FakeToolServer, reached

Hosted = tuple[FakeToolServer, Callable[[Http], RepositoryHost], str]  # its server, reader and project


@pytest.fixture(params=["github", "gitlab", "azure"])
def hosted(request: pytest.FixtureRequest) -> Hosted:
    return {
        "github": (FakeGitHub(), GitHub, "acme/shop"),
        "gitlab": (FakeGitLab(), GitLab, "acme/shop"),
        "azure": (FakeAzureDevOps(), AzureDevOps, "Shop/12"),
    }[request.param]


async def test_commits_come_with_their_files_and_deployments_with_their_revision(hosted: Hosted) -> None:
    fake, host, project = hosted
    async with reached(fake, base="/acme" if host is AzureDevOps else "") as http:
        commit, deployment = await HostedChanges("changes", host(http), {"shop": project}).changes(HOUR)
    assert (commit.kind, commit.service, commit.author, commit.title) == ("commit", "shop", "Asha", "Smaller pool")
    assert (commit.detail, commit.files) == ("From 40 to 4.", ("cart/pool.yaml",))
    assert "+size: 4" in commit.diff or host is AzureDevOps  # whose API has no diffs
    assert (deployment.kind, deployment.service, deployment.revision) == ("deploy", "shop", SHA)
    if host is AzureDevOps:
        assert (deployment.title, deployment.commits) == ("shop 20260314.8 of main", (SHA,))
    else:
        assert deployment.title == "v2 to production"


async def test_a_commit_of_a_shared_repository_names_no_service(hosted: Hosted) -> None:
    fake, host, project = hosted
    async with reached(fake, base="/acme" if host is AzureDevOps else "") as http:
        commit, _ = await HostedChanges("changes", host(http), {"cart": project, "login": project}).changes(HOUR)
    assert commit.touched == ()


async def test_a_refused_token_is_said(hosted: Hosted) -> None:
    fake, host, project = hosted
    async with reached(fake, token="wrong") as http:
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await HostedChanges("changes", host(http), {"shop": project}).changes(HOUR)


async def test_what_one_repository_answers_is_kept_when_another_is_gone(hosted: Hosted) -> None:
    fake, host, project = hosted
    other = "acme/gone" if host is not AzureDevOps else "Gone/12"
    async with reached(fake, base="/acme" if host is AzureDevOps else "") as http:
        found = await HostedChanges("changes", host(http), {"shop": project, "gone": other}).changes(HOUR)
    assert {change.kind for change in found} >= {"commit"}
    assert isinstance(found, Partial)
    assert host is GitLab or any(other in gap.tool for gap in found.gaps)


async def test_only_deployments_that_succeeded_count_on_every_host(hosted: Hosted) -> None:
    fake, host, project = hosted
    async with reached(fake, base="/acme" if host is AzureDevOps else "") as http:
        found = await host(http).deployments(project, HOUR)
    ids = [each.id for each in found if HOUR.start <= each.at < HOUR.end]
    assert ids == (["run-8"] if host is AzureDevOps else ["deployment-7"])
