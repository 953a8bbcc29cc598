"""Commits and deployments of GitHub and GitLab as changes, over servers that answer as documented."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from adapters.http import Http
from adapters.tools.hosted_changes import GitHubRepositories, GitLabRepositories, HostedChanges, RepositoryHost
from core.model.errors import ToolUnavailable
from core.ports import TimeWindow
from tests.fakes.tool_servers import FakeToolServer, reached

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))
SHA = "9b03d51c2f7ae4415d0c7f2b88a1c3e5d7f90112"
PATCH = "@@ -1 +1 @@\n-size: 40\n+size: 4"


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).isoformat()


class FakeGitHub(FakeToolServer):
    def routes(self) -> list[web.RouteDef]:
        person = {"name": "Asha", "date": at(5)}
        message = {"message": "Smaller pool\n\nFrom 40 to 4.", "author": person, "committer": person}
        commit = {"sha": SHA, "commit": message, "html_url": "https://git.example/c"}
        deployment = {"id": 7, "sha": SHA, "ref": "v2", "environment": "production", "created_at": at(10)}
        return [
            web.get("/repos/acme/shop/commits", _says([commit])),
            web.get(
                f"/repos/acme/shop/commits/{SHA[:12]}",
                _says({**commit, "files": [{"filename": "cart/pool.yaml", "patch": PATCH}]}),
            ),
            web.get(
                "/repos/acme/shop/deployments",
                _says([deployment, {**deployment, "id": 6, "created_at": at(-9)}]),
            ),
        ]


class FakeGitLab(FakeToolServer):
    def routes(self) -> list[web.RouteDef]:
        commit = {
            "id": SHA,
            "message": "Smaller pool\n\nFrom 40 to 4.",
            "author_name": "Asha",
            "committed_date": at(5),
            "web_url": "https://git.example/c",
        }
        deployment = {"id": 7, "sha": SHA, "ref": "v2", "updated_at": at(10), "environment": {"name": "production"}}
        root = "/api/v4/projects/{project}"
        return [
            web.get(f"{root}/repository/commits", _says([commit])),
            web.get(
                f"{root}/repository/commits/{SHA[:12]}/diff",
                _says([{"new_path": "cart/pool.yaml", "diff": PATCH}]),
            ),
            web.get(f"{root}/deployments", _says([deployment])),
        ]


def _says(answer: object) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(answer)

    return handler


@pytest.fixture(params=["github", "gitlab"])
def hosted(request: pytest.FixtureRequest) -> tuple[FakeToolServer, Callable[[Http], RepositoryHost]]:
    return (FakeGitHub(), GitHubRepositories) if request.param == "github" else (FakeGitLab(), GitLabRepositories)


async def test_commits_come_with_their_diff_and_deployments_with_their_revision(
    hosted: tuple[FakeToolServer, Callable[[Http], RepositoryHost]],
) -> None:
    fake, host = hosted
    async with reached(fake) as http:
        commit, deployment = await HostedChanges("changes", host(http), {"shop": "acme/shop"}).changes(HOUR)
    assert (commit.kind, commit.service, commit.author, commit.title) == ("commit", "shop", "Asha", "Smaller pool")
    assert (commit.detail, commit.files) == ("From 40 to 4.", ("cart/pool.yaml",))
    assert "+size: 4" in commit.diff
    assert (deployment.kind, deployment.service, deployment.revision) == ("deploy", "shop", SHA)
    assert deployment.title == "v2 to production"


async def test_a_commit_of_a_shared_repository_names_no_service(
    hosted: tuple[FakeToolServer, Callable[[Http], RepositoryHost]],
) -> None:
    fake, host = hosted
    async with reached(fake) as http:
        services = {"cart": "acme/shop", "login": "acme/shop"}
        commit, _ = await HostedChanges("changes", host(http), services).changes(HOUR)
    assert commit.touched == ()


async def test_a_refused_token_is_said(hosted: tuple[FakeToolServer, Callable[[Http], RepositoryHost]]) -> None:
    fake, host = hosted
    async with reached(fake, token="wrong") as http:
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await HostedChanges("changes", host(http), {"shop": "acme/shop"}).changes(HOUR)
