"""Commits and deployments of GitHub, GitLab and Azure DevOps as changes, over servers that answer as documented."""

from __future__ import annotations

import pytest

from core.model.errors import ToolUnavailable
from core.ports import Change, Partial
from tests.fakes.change_servers import SHA, FakeAzureDevOps, FakeGitHub, FakeGitLab, changes_of
from tests.fakes.recorded_reader import HOUR
from tests.fakes.tool_servers import FakeToolServer, reached

HOSTS: dict[str, tuple[type[FakeToolServer], str]] = {
    "github_actions": (FakeGitHub, "acme/shop"),
    "gitlab_ci": (FakeGitLab, "acme/shop"),
    "azure_devops": (FakeAzureDevOps, "Shop/12"),
}
AZURE = "azure_devops"


@pytest.fixture(params=HOSTS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def changes(kind: str, projects: dict[str, str]) -> list[Change]:
    async with reached(HOSTS[kind][0](), base="/acme" if kind == AZURE else "") as http:
        return await changes_of(kind, http, projects).changes(HOUR)


async def test_commits_come_with_their_files_and_deployments_with_their_revision(kind: str) -> None:
    commit, deployment = await changes(kind, {"shop": HOSTS[kind][1]})
    assert (commit.kind, commit.service, commit.author, commit.title) == ("commit", "shop", "Asha", "Smaller pool")
    assert (commit.detail, commit.files) == ("From 40 to 4.", ("cart/pool.yaml",))
    assert (commit.id, commit.revision) == (SHA[:12], SHA)
    assert "+size: 4" in commit.diff or kind == AZURE  # whose API has no diffs
    assert (deployment.kind, deployment.service, deployment.revision) == ("deploy", "shop", SHA)
    if kind == AZURE:
        assert (deployment.title, deployment.commits) == ("shop 20260314.8 of main", (SHA,))
        assert deployment.detail.startswith("Smaller pool")
    else:
        assert deployment.title == "v2 to production"


async def test_a_commit_of_a_shared_repository_names_no_service(kind: str) -> None:
    commit, _ = await changes(kind, dict.fromkeys(("cart", "login"), HOSTS[kind][1]))
    assert commit.touched == ()


async def test_a_deployment_of_a_shared_project_has_the_service_that_it_names(kind: str) -> None:
    _, deployment = await changes(kind, dict.fromkeys(("shop", "production"), HOSTS[kind][1]))
    assert deployment.service == ("shop" if kind == AZURE else "production")


async def test_a_refused_token_is_said(kind: str) -> None:
    async with reached(HOSTS[kind][0](), token="wrong") as http:
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await changes_of(kind, http, {"shop": HOSTS[kind][1]}).changes(HOUR)


async def test_what_one_repository_answers_is_kept_when_another_is_gone(kind: str) -> None:
    other = "Gone/12" if kind == AZURE else "acme/gone"
    read = await changes(kind, {"shop": HOSTS[kind][1], "gone": other})
    assert {change.kind for change in read} >= {"commit"}
    assert isinstance(read, Partial)
    assert kind == "gitlab_ci" or any(other in gap.tool for gap in read.gaps)


async def test_only_deployments_that_succeeded_count_on_every_host(kind: str) -> None:
    read = await changes(kind, {"shop": HOSTS[kind][1]})
    ids = [each.id for each in read if each.kind == "deploy"]
    assert ids == (["run 8"] if kind == AZURE else ["deployment 7"])
