"""The contract of BuildServer and the tools over it: GitHub Actions, GitLab CI, Jenkins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.tools.ci import Builds, BuildServer
from adapters.tools.github_actions import GitHubActions
from adapters.tools.gitlab_ci import GitLabCi
from adapters.tools.http import Http
from adapters.tools.jenkins import Jenkins
from core.errors import ToolUnavailable
from core.ports import TimeWindow, Tool
from tests.fakes.tool_servers import FakeGitHub, FakeGitLab, FakeJenkins, FakeToolServer, reached

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))
SHA = "4f2c9a1b77aa0099"


@dataclass(frozen=True, slots=True)
class World:
    """Three runs: 3 began after the window, 2 failed, 1 succeeded."""

    fake: FakeToolServer
    server: Callable[[Http], BuildServer]
    project: str
    step: str
    log: str


def github() -> World:
    def run(number: int, minute: int, conclusion: str) -> dict[str, object]:
        return {
            "id": number,
            "name": "CI",
            "display_title": "Smaller pool",
            "head_branch": "main",
            "head_sha": SHA,
            "status": "completed",
            "conclusion": conclusion,
            "created_at": f"2026-03-14T{9 + minute // 60:02d}:{minute % 60:02d}:00Z",
        }

    fake = FakeGitHub([run(3, 75, "success"), run(2, 30, "failure"), run(1, 10, "success")])
    return World(fake, GitHubActions, "acme/api", "build: Run tests", "E   assert 1 == 2")


def gitlab() -> World:
    def pipeline(number: int, minute: int, status: str) -> dict[str, object]:
        at = f"2026-03-14T{9 + minute // 60:02d}:{minute % 60:02d}:00.000Z"
        return {"id": number, "status": status, "ref": "main", "sha": SHA, "source": "push", "created_at": at}

    fake = FakeGitLab([pipeline(3, 75, "success"), pipeline(2, 30, "failed"), pipeline(1, 10, "success")])
    return World(fake, GitLabCi, "acme/api", "test: unit (script_failure)", "E   assert 1 == 2")


def jenkins() -> World:
    def build(number: int, minute: int, result: str | None) -> dict[str, object]:
        at = round((START + timedelta(minutes=minute)).timestamp() * 1000)
        revision = {"lastBuiltRevision": {"SHA1": SHA}}
        return {
            "number": number,
            "result": result,
            "timestamp": at,
            "displayName": f"#{number}",
            "actions": [{}, revision],
        }

    fake = FakeJenkins([build(3, 75, None), build(2, 30, "FAILURE"), build(1, 10, "SUCCESS")])
    return World(fake, Jenkins, "acme/api", "console", "E   assert 1 == 2")


@pytest.fixture(params=[github, gitlab, jenkins], ids=["github", "gitlab", "jenkins"])
def world(request: pytest.FixtureRequest) -> World:
    return request.param()


@pytest.fixture
async def tools(world: World) -> AsyncIterator[dict[str, Tool]]:
    async with AsyncExitStack() as stack:
        if isinstance(world.fake, FakeGitHub):
            app = web.Application()

            async def log(_: web.Request) -> web.Response:
                return web.Response(text="collecting\nE   assert 1 == 2\n")

            app.router.add_get("/log", log)
            storage = TestServer(app)
            await storage.start_server()
            stack.push_async_callback(storage.close)
            world.fake.log_url = f"http://localhost:{storage.port}/log?signature=x"
        http = await stack.enter_async_context(reached(world.fake, elsewhere=frozenset({"localhost"})))
        builds = Builds("ci", world.server(http), {"api": world.project})
        yield {tool.name: tool for tool in await builds.tools(("api", "other"), HOUR)}


async def test_the_runs_before_the_end_of_the_window_are_listed_with_their_failed_steps(
    world: World, tools: dict[str, Tool]
) -> None:
    newest, oldest = (await tools["build_runs"].call({"service": "api"})).splitlines()
    assert newest.startswith("2026-03-14 09:30 UTC 2 ")
    assert newest.endswith(f"; failed: {world.step}")
    assert SHA[:12] in newest
    assert oldest.startswith("2026-03-14 09:10 UTC 1 ")
    assert "failed:" not in oldest


async def test_the_log_of_the_last_failure_is_told(world: World, tools: dict[str, Tool]) -> None:
    told = await tools["build_failure"].call({"service": "api"})
    assert told.startswith("2026-03-14 09:30 UTC 2 ")
    assert world.log in told


async def test_only_the_services_of_the_projects_can_be_asked_for(tools: dict[str, Tool]) -> None:
    assert {tool.parameters[0].choices for tool in tools.values()} == {("api",)}


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_build_server_that_refuses_says_so(status: int, world: World, tools: dict[str, Tool]) -> None:
    world.fake.refuse(status, times=10)
    with pytest.raises(ToolUnavailable):
        await tools["build_runs"].call({"service": "api"})


async def test_a_log_that_lies_where_nobody_allowed_is_not_fetched() -> None:
    world = github()
    assert isinstance(world.fake, FakeGitHub)
    world.fake.log_url = "http://storage.invalid/log"
    async with reached(world.fake) as http:
        builds = Builds("ci", world.server(http), {"api": world.project})
        found = {tool.name: tool for tool in await builds.tools(("api",), HOUR)}
        with pytest.raises(ToolUnavailable, match=r"storage\.invalid"):
            await found["build_failure"].call({"service": "api"})


async def test_a_project_without_a_failure_says_so() -> None:
    async with reached(FakeJenkins()) as http:
        builds = Builds("ci", Jenkins(http), {"api": "acme/api"})
        found = {tool.name: tool for tool in await builds.tools(("api",), HOUR)}
        assert await found["build_failure"].call({"service": "api"}) == "No run of acme/api failed."
        assert await found["build_runs"].call({"service": "api"}) == "No runs of acme/api."
