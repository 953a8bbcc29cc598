"""The contract of builds and the tools over them: GitHub, GitLab, Azure DevOps, Jenkins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from adapters.http import Http
from adapters.readers.builds import Builds, whole_lines
from core.model.errors import NoFailedBuild, ToolUnavailable
from core.ports import TimeWindow, Tool
from tests.fakes.build_worlds import SHA, START, World, azure, builds_of, github, gitlab, jenkins
from tests.fakes.tool_servers import FakeGitHub, FakeJenkins, reached

HOUR = TimeWindow(START, START + timedelta(hours=1))


@pytest.fixture(params=[github, gitlab, azure, jenkins], ids=["github", "gitlab", "azure", "jenkins"])
def world(request: pytest.FixtureRequest) -> World:
    return request.param()


@pytest.fixture
async def tools(builds: Builds) -> dict[str, Tool]:
    return {tool.name: tool for tool in await builds.tools(("api", "other"), HOUR)}


@pytest.fixture
async def builds(world: World) -> AsyncIterator[Builds]:
    elsewhere = frozenset[str]()
    async with AsyncExitStack() as stack:
        if isinstance(world.fake, FakeGitHub):
            app = web.Application()

            async def log(_: web.Request) -> web.Response:
                return web.Response(
                    text="2026-03-14T09:30:01.1234567Z collecting\n2026-03-14T09:30:02.1Z E   assert 1 == 2\n"
                )

            app.router.add_get("/log", log)
            storage = TestServer(app)
            await storage.start_server()
            stack.push_async_callback(storage.close)
            world.fake.log_url = f"http://localhost:{storage.port}/log?signature=x"
            elsewhere = frozenset({f"localhost:{storage.port}"})
        http = await stack.enter_async_context(reached(world.fake, elsewhere=elsewhere, base=world.base))
        world.address = http.url.rstrip("/") + "/"
        yield world.builds(http)


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
        builds = world.builds(http)
        found = {tool.name: tool for tool in await builds.tools(("api",), HOUR)}
        with pytest.raises(ToolUnavailable, match=r"storage\.invalid"):
            await found["build_failure"].call({"service": "api"})


async def test_a_run_with_a_title_of_several_lines_stays_on_one() -> None:
    world = github()
    assert isinstance(world.fake, FakeGitHub)
    world.fake.runs = [each | {"display_title": "Smaller pool\n\nFrom 40 to 4."} for each in world.fake.runs]
    async with reached(world.fake) as http:
        runs, _ = await world.builds(http).tools(("api",), HOUR)
        assert len((await runs.call({"service": "api"})).splitlines()) == 2


async def test_a_project_without_a_failure_says_so() -> None:
    async with reached(FakeJenkins()) as http:
        builds = builds_of("jenkins", http, {"api": "acme/api"})
        found = {tool.name: tool for tool in await builds.tools(("api",), HOUR)}
        assert await found["build_failure"].call({"service": "api"}) == "No run of acme/api failed."
        assert await found["build_runs"].call({"service": "api"}) == "No runs of acme/api."


async def test_the_failed_runs_whose_steps_are_not_read_are_named_and_no_failure_is_told_of_the_runs_that_were_read() -> (
    None
):
    def built(result: str) -> list[dict[str, Any]]:
        return [{"number": number, "result": result, "timestamp": 1773478800000 + number} for number in range(25)]

    fake = FakeJenkins(built("FAILURE"))
    async with reached(fake) as http:
        found = {
            tool.name: tool for tool in await builds_of("jenkins", http, {"api": "acme/api"}).tools(("api",), HOUR)
        }
        listed = (await found["build_runs"].call({"service": "api"})).splitlines()
        assert listed[-1].startswith("Not read: ci: failed steps: left out (15 of 20: 19, 18, 17, ")
        fake.builds = built("SUCCESS")
        none = await found["build_failure"].call({"service": "api"})
    assert none == "No run of acme/api failed among the last 20."


async def test_the_failed_run_that_a_link_leads_to_is_read_without_the_times_of_its_lines(
    world: World, builds: Builds
) -> None:
    found = await builds.linked_failure(f"{world.address}{world.page}")
    assert found is not None
    assert (found.system, found.project, found.service, found.run, found.step) == (
        "ci",
        world.project,
        "api",
        "2",
        world.step,
    )
    assert found.at == START + timedelta(minutes=30)
    assert world.log in found.log.splitlines()


async def test_a_run_that_passed_is_no_failure(world: World, builds: Builds) -> None:
    with pytest.raises(NoFailedBuild, match=r"run 1 of .* passed"):
        await builds.linked_failure(f"{world.address}{world.page.replace('2', '1', 1).partition('&')[0]}")


async def test_a_run_that_does_not_exist_is_named(world: World, builds: Builds) -> None:
    with pytest.raises(NoFailedBuild, match=r"run 77 of .* is gone.*404"):
        await builds.linked_failure(f"{world.address}{world.page.replace('2', '77', 1)}")


@pytest.mark.parametrize(
    "link", ["https://evil.invalid/{page}", "{address}", "{address}{other}", "http://[", "not a link"]
)
async def test_a_link_to_another_server_or_project_is_not_followed(link: str, world: World, builds: Builds) -> None:
    world.fake.refuse(500, times=10)
    other = world.page.replace("api", "secret").replace("Shop", "Secret")
    assert await builds.linked_failure(link.format(page=world.page, address=world.address, other=other)) is None


async def test_the_last_run_of_a_service_is_read_only_if_it_failed(world: World, builds: Builds) -> None:
    failed = await builds.last_failure("api", START + timedelta(hours=1))
    assert failed is not None
    assert failed.run == "2"
    assert await builds.last_failure("api", START + timedelta(minutes=20)) is None
    assert await builds.last_failure("api", START) is None
    assert await builds.last_failure("other", START + timedelta(hours=1)) is None


async def test_the_job_that_a_link_of_gitlab_names_is_found_through_its_pipeline() -> None:
    world = gitlab()
    async with reached(world.fake) as http:
        found = await world.builds(http).linked_failure(f"{http.url.rstrip('/')}/acme/api/-/jobs/81")
    assert found is not None
    assert (found.run, found.step) == ("2", world.step)


async def test_a_link_to_github_itself_belongs_to_its_api() -> None:
    async with aiohttp.ClientSession() as session:
        server = builds_of("github_actions", Http("GitHub", "https://api.github.com", session), {})
        page = "https://github.com/acme/api/actions/runs/2/attempts/1/job/71"
        assert server.link(URL(page), "acme/api") == {"run": "2", "job": "71", "attempt": "1"}
        page = "https://github.com/acme/api/actions/runs/2/job/71?pr=4"
        assert server.link(URL(page), "acme/api") == {"run": "2", "job": "71"}
        assert not server.link(URL("https://github.example/acme/api/actions/runs/2"), "acme/api")


async def test_a_run_of_another_pipeline_of_the_same_project_is_not_read() -> None:
    world = azure()
    async with reached(world.fake, base=world.base) as http:
        builds = builds_of("azure_devops", http, {"web": "Shop/13", "api": "Shop/12"})
        found = await builds.linked_failure(f"{http.url.rstrip('/')}/{world.page}")
        assert found is not None
        assert found.service == "api"
        only_web = builds_of("azure_devops", http, {"web": "Shop/13"})
        assert await only_web.linked_failure(f"{http.url.rstrip('/')}/{world.page}") is None


def test_lines_of_a_long_log_keep_their_numbers_where_only_its_end_is_read() -> None:
    log = "\n".join(f"line {number}" for number in range(200_000))
    kept = whole_lines(log)
    assert kept.count("\n") == log.count("\n")
    assert kept.split("\n")[199_990] == "line 199990"
    assert kept.startswith("\n")
