"""What a link to a build leads to: that attempt, that job and no other, or the reason why there is no failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from yarl import URL

from adapters.http import Http
from adapters.readers.builds import Builds
from core.model.errors import NoFailedBuild
from core.ports import FailedBuild
from core.rca.build_log import BuildEnd, End, build_end
from tests.cases import every_case
from tests.fakes.build_worlds import START, World, azure, builds_of, github, gitlab, jenkins
from tests.fakes.tool_servers import FakeAzureDevOps, FakeGitHub, FakeGitLab, FakeJenkins, reached


@asynccontextmanager
async def opened(world: World, project: str = "") -> AsyncIterator[Builds]:
    async with reached(world.fake, base=world.base) as http:
        world.address = http.url.rstrip("/") + "/"
        yield world.builds(http, project)


async def linked(world: World, page: str, project: str = "") -> FailedBuild | None:
    async with opened(world, project) as builds:
        return await builds.linked_failure(f"{world.address}{page}")


def job(number: int, name: str, conclusion: str | None = "failure") -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "status": "completed" if conclusion else "in_progress",
        "conclusion": conclusion,
    }


def rerun(conclusion: str | None = "failure") -> tuple[World, FakeGitHub]:
    """Run 2 in its third attempt; each attempt has jobs of its own, with ids of their own."""
    world = github()
    fake = world.fake
    assert isinstance(fake, FakeGitHub)
    status = "completed" if conclusion else "in_progress"
    fake.runs = [
        each | ({"run_attempt": 3, "conclusion": conclusion, "status": status} if each["id"] == 2 else {})
        for each in fake.runs
    ]
    fake.jobs = {
        "": [job(31, "deploy"), job(32, "lint", "success"), job(33, "smoke", None), job(34, "docs", "cancelled")],
        "2": [job(21, "build"), job(22, "lint", "success")],
        "1": [job(11, "lint"), job(12, "unit", "timed_out")],
    }
    fake.logs = {str(each["id"]): f"log of {each['id']}\n" for jobs in fake.jobs.values() for each in jobs}
    return world, fake


@every_case(
    ("page", "step", "log"),
    [
        ("actions/runs/2", "deploy", "log of 31"),
        ("actions/runs/2/job/11", "lint", "log of 11"),
        ("actions/runs/2/job/12?pr=7#step:4:9", "unit", "log of 12"),
        ("actions/runs/2/job/21", "build", "log of 21"),
        ("actions/runs/2/attempts/1", "lint", "log of 11"),
        ("actions/runs/2/attempts/2", "build", "log of 21"),
        ("actions/runs/2/attempts/3", "deploy", "log of 31"),
        ("actions/runs/2/attempts/1/job/12", "unit", "log of 12"),
        ("runs/11", "lint", "log of 11"),
        ("runs/31?check_suite_focus=true", "deploy", "log of 31"),
        ("pull/7/checks?check_run_id=12", "unit", "log of 12"),
        ("commit/9b03d51c2f7a/checks?check_run_id=21", "build", "log of 21"),
        ("commit/9b03d51c2f7a/checks/31/logs", "deploy", "log of 31"),
    ],
)
async def test_the_log_of_the_linked_attempt_and_job_of_github_is_read(page: str, step: str, log: str) -> None:
    world, _ = rerun()
    found = await linked(world, f"acme/api/{page}")
    assert found is not None
    assert (found.step, found.log.strip()) == (step, log)
    assert found.url.endswith(page)


@every_case(
    ("page", "state"),
    [
        ("actions/runs/2/job/22", "job lint of run 2 of acme/api passed"),
        ("actions/runs/2/job/32", "job lint of run 2 of acme/api passed"),
        ("actions/runs/2/job/33", "job smoke of run 2 of acme/api is in_progress"),
        ("actions/runs/2/job/34", "job docs of run 2 of acme/api was cancelled"),
        ("actions/runs/2/job/99", "job 99 of run 2 of acme/api is gone"),
        ("actions/runs/1", "run 1 of acme/api passed"),
        ("actions/runs/98", "run 98 of acme/api, or its log, is gone"),
        ("runs/22", "job lint of run 2 of acme/api passed"),
        ("runs/99", "job 99 of acme/api, or its log, is gone"),
    ],
)
async def test_a_link_to_what_did_not_fail_says_its_state_and_reads_no_other_job(page: str, state: str) -> None:
    world, _ = rerun()
    with pytest.raises(NoFailedBuild, match=state):
        await linked(world, f"acme/api/{page}")


async def test_an_earlier_attempt_that_passed_is_not_confused_with_the_latest() -> None:
    world, fake = rerun()
    fake.jobs["1"] = [job(11, "lint", "success")]
    with pytest.raises(NoFailedBuild, match="run 2, attempt 1 of acme/api has no failed job"):
        await linked(world, "acme/api/actions/runs/2/attempts/1")


@pytest.mark.parametrize("conclusion", ["cancelled", None])
async def test_a_run_that_was_cancelled_or_goes_on_has_the_job_that_failed_in_it(conclusion: str | None) -> None:
    world, _ = rerun(conclusion)
    found = await linked(world, "acme/api/actions/runs/2")
    assert found is not None
    assert found.step == "deploy"


@pytest.mark.parametrize(
    ("conclusion", "state"), [("cancelled", "was cancelled"), (None, "is in_progress"), ("failure", "no failed job")]
)
async def test_a_run_without_a_failed_job_says_its_state(conclusion: str | None, state: str) -> None:
    world, fake = rerun(conclusion)
    fake.jobs[""] = [job(34, "docs", "cancelled"), job(33, "smoke", None)]
    with pytest.raises(NoFailedBuild, match=f"run 2 of acme/api .*{state}"):
        await linked(world, "acme/api/actions/runs/2")


async def test_a_job_that_was_cancelled_because_it_took_too_long_failed() -> None:
    world, fake = rerun("cancelled")
    fake.jobs[""] = [job(34, "docs", "cancelled"), job(35, "load", "cancelled")]
    fake.logs["35"] = "##[error]The job has exceeded the maximum execution time of 30m0s\n"
    found = await linked(world, "acme/api/actions/runs/2")
    assert found is not None
    assert found.step == "load"


async def test_the_one_failed_job_beyond_the_first_hundred_is_found() -> None:
    world, fake = rerun()
    fake.jobs[""] = [job(1000 + number, f"shard {number}", "success") for number in range(230)] + [job(31, "deploy")]
    fake.jobs[""][7] = {"name": "a job without an id"}
    found = await linked(world, "acme/api/actions/runs/2")
    assert found is not None
    assert (found.step, found.log.strip()) == ("deploy", "log of 31")


def retried() -> World:
    """Pipeline 2 of GitLab, whose job `unit` failed, was retried and passed; `pack` failed in both attempts."""
    world = gitlab()
    assert isinstance(world.fake, FakeGitLab)
    names = {"81": ("unit", "failed"), "82": ("pack", "failed"), "91": ("unit", "success"), "92": ("pack", "failed")}
    world.fake.jobs = {
        number: {"id": int(number), "name": name, "stage": "test", "status": status}
        for number, (name, status) in names.items()
    }
    world.fake.jobs["83"] = {"id": 83, "name": "docs", "stage": "test", "status": "running"}
    world.fake.jobs["84"] = {"id": 84, "name": "e2e", "status": "failed", "failure_reason": "job_execution_timeout"}
    world.fake.jobs["85"] = {"id": 85, "name": "audit", "stage": "test", "status": "failed", "allow_failure": True}
    world.fake.logs = {number: f"log of {number}\n" for number in world.fake.jobs}
    return world


@every_case(
    ("page", "step", "log"),
    [
        ("-/pipelines/2", "test: pack", "log of 92"),
        ("-/pipelines/2/failures", "test: pack", "log of 92"),
        ("-/jobs/81", "test: unit", "log of 81"),
        ("-/jobs/82/raw", "test: pack", "log of 82"),
        ("-/jobs/84", "e2e (job_execution_timeout)", "log of 84"),
        ("builds/82", "test: pack", "log of 82"),
        ("-/jobs/85", "test: audit", "log of 85"),  # which may fail
    ],
)
async def test_a_retried_job_of_gitlab_is_read_in_the_linked_attempt_or_else_in_the_latest(
    page: str, step: str, log: str
) -> None:
    found = await linked(retried(), f"acme/api/{page}")
    assert found is not None
    assert (found.step, found.log.strip()) == (step, log)


@pytest.mark.parametrize(
    ("page", "state"), [("-/jobs/91", "passed"), ("-/jobs/83", "is running"), ("-/jobs/404", "gone")]
)
async def test_a_job_of_gitlab_that_did_not_fail_says_its_state(page: str, state: str) -> None:
    with pytest.raises(NoFailedBuild, match=state):
        await linked(retried(), f"acme/api/{page}")


def bridge(number: int, child: int, *, project: int = 5, **more: Any) -> dict[str, Any]:
    within = {"id": 2, "project_id": 5}
    started = {"id": child, "project_id": project, "status": "failed"}
    return {"id": number, "name": "e2e", "status": "failed", "pipeline": within, "downstream_pipeline": started} | more


def with_children(bridges: dict[str, list[dict[str, Any]]]) -> World:
    """Pipeline 2 of GitLab, of which no own job failed; a job failed in pipeline 9."""
    world = gitlab()
    assert isinstance(world.fake, FakeGitLab)
    world.fake.jobs = {"93": {"id": 93, "name": "smoke", "stage": "test", "status": "failed", "in": "9"}}
    world.fake.logs, world.fake.bridges = {"93": "log of 93\n"}, bridges
    return world


@pytest.mark.parametrize(
    "bridges",
    [{"2": [bridge(90, 9)]}, {"2": [bridge(90, 7), bridge(91, 8)], "8": [bridge(92, 9)]}],
    ids=["child", "grandchild"],
)
async def test_the_job_that_failed_in_a_child_pipeline_is_read(bridges: dict[str, list[dict[str, Any]]]) -> None:
    found = await linked(with_children(bridges), "acme/api/-/pipelines/2")
    assert found is not None
    assert (found.step, found.log.strip()) == ("test: smoke", "log of 93")


@pytest.mark.parametrize(
    "bridges",
    [
        [bridge(90, 9, project=6)],
        [bridge(90, 9, allow_failure=True)],
        [bridge(90, 9, downstream_pipeline=None)],
    ],
    ids=["of another project", "optional", "never started"],
)
async def test_a_pipeline_that_is_no_failed_child_is_not_read(bridges: list[dict[str, Any]]) -> None:
    with pytest.raises(NoFailedBuild, match="run 2 of acme/api failed, but has no failed job"):
        await linked(with_children({"2": bridges}), "acme/api/-/pipelines/2")


def attempted() -> World:
    """Run 2 of Azure DevOps, whose stage ran before, with other records."""
    world = azure()
    assert isinstance(world.fake, FakeAzureDevOps)
    late = {"message": "The job running on agent A ran longer than the maximum time of 60 minutes."}
    world.fake.earlier = {
        "old": [
            {"id": "s0", "type": "Stage", "name": "__default", "result": "failed"},
            {"id": "j0", "parentId": "s0", "type": "Job", "name": "build", "result": "failed"},
            {"id": "t0", "parentId": "j0", "type": "Task", "name": "Restore", "result": "failed", "log": {"id": 3}},
            {"id": "j9", "parentId": "s0", "type": "Job", "name": "load", "result": "canceled", "issues": [late]}
            | {"log": {"id": 8}},
            {"id": "j8", "parentId": "s0", "type": "Job", "name": "docs", "result": "succeeded"},
        ]
    }
    return world


@pytest.mark.parametrize(
    ("query", "step", "log"),
    [
        ("&view=logs&j=j0&t=t0", "build: Restore", "log 3"),
        ("&view=logs&j=j0", "build: Restore", "log 3"),
        ("&view=logs&s=s0", "build: Restore", "log 3"),
        ("&view=logs&j=j9", "load", "log 8"),
        ("&view=logs&j=j1", "build: Run tests", "E   assert 1 == 2"),
        ("&view=logs&j=j1&t=t1", "build: Run tests", "E   assert 1 == 2"),
        ("", "build: Run tests", "E   assert 1 == 2"),
    ],
)
@pytest.mark.parametrize("page", ["results", "index", ""])
async def test_the_linked_attempt_and_job_of_azure_devops_is_read(page: str, query: str, step: str, log: str) -> None:
    found = await linked(attempted(), f"Shop/_build/{page}?buildId=2{query}")
    assert found is not None
    assert found.step == step
    assert log in found.log


@pytest.mark.parametrize("server", ["https://dev.azure.com/acme", "https://acme.visualstudio.com"])
@pytest.mark.parametrize(
    ("page", "run"),
    [
        ("https://dev.azure.com/acme/Shop/_build/results?buildId=2", "2"),
        ("https://acme.visualstudio.com/Shop/_build/results?buildId=2&view=logs", "2"),
        ("https://acme.visualstudio.com/DefaultCollection/Shop/_build/index?buildId=2", "2"),
        ("https://other.visualstudio.com/Shop/_build/results?buildId=2", ""),
        ("https://visualstudio.com/acme/Shop/_build/results?buildId=2", ""),
        ("https://acme.visualstudio.com.example/Shop/_build/results?buildId=2", ""),
    ],
)
async def test_both_addresses_of_an_organization_lead_to_its_builds(server: str, page: str, run: str) -> None:
    async with aiohttp.ClientSession() as session:
        link = builds_of("azure_devops", Http("the server", server, session), {}).link(URL(page), "Shop/12")
    assert link.get("run", "") == run


@pytest.mark.parametrize(("query", "state"), [("&j=j8", "job docs of run 2 .* passed"), ("&j=j7", "job j7 .* is gone")])
async def test_a_job_of_azure_devops_that_did_not_fail_says_its_state(query: str, state: str) -> None:
    with pytest.raises(NoFailedBuild, match=state):
        await linked(attempted(), f"Shop/_build/results?buildId=2{query}")


JENKINS_PAGES = [
    "job/acme/job/api/2",
    "view/all/job/acme/job/api/2/console",
    "job/acme/view/Team%20A/view/Live/job/api/2/display/redirect",
    "user/asha/my-views/view/Mine/job/acme/job/api/2/",
    "job/acme/job/api/lastFailedBuild/console",
    "blue/organizations/jenkins/acme%2Fapi/detail/api/2/pipeline/17",
]


@every_case("page", JENKINS_PAGES)
async def test_every_page_of_a_jenkins_build_leads_to_it(page: str) -> None:
    found = await linked(jenkins(), page)
    assert found is not None
    assert (found.run, found.service) == ("2", "api")
    assert "E   assert 1 == 2" in found.log


@pytest.mark.parametrize(
    "page",
    [
        "job/acme/job/api/job/fix%252Fpool/2/",
        "view/all/job/acme/job/api/job/fix%252Fpool/lastFailedBuild/",
        "blue/organizations/jenkins/acme%2Fapi/detail/fix%2Fpool/2/tests",
        "blue/organizations/jenkins/acme%2Fapi/detail/fix%252Fpool/2/pipeline",
    ],
)
@pytest.mark.parametrize(("project", "run"), [("acme/api", "fix%2Fpool/2"), ("acme/api/fix%2Fpool", "2")])
async def test_a_build_of_a_branch_is_one_of_its_project(page: str, project: str, run: str) -> None:
    found = await linked(jenkins(), page, project)
    assert found is not None
    assert found.run == run


@every_case(
    "page",
    [
        "job/acme/job/api/",
        "job/acme/job/api/configure",
        "job/acme/job/api/job/a/job/b/2",
        "job/acme/job/api/job/..%2Fsecret/x/2",
        "view/2",
        "blue/organizations/jenkins/acme%2Fapi/detail/api/activity",
        "blue/organizations/jenkins/acme%2Fsecret/detail/main/2",
        "blue/organizations",
    ],
)
async def test_a_page_of_jenkins_that_is_no_build_of_the_project_is_not_read(page: str) -> None:
    assert await linked(jenkins(), page) is None


async def test_a_build_of_jenkins_that_was_aborted_failed_only_if_it_took_too_long() -> None:
    world = jenkins()
    assert isinstance(world.fake, FakeJenkins)
    world.fake.builds = [each | {"result": "ABORTED"} for each in world.fake.builds]
    with pytest.raises(NoFailedBuild, match="run 2 of acme/api was cancelled"):
        await linked(world, world.page)
    world.fake.log = "Cancelling nested steps due to timeout\nFinished: ABORTED\n"
    assert await linked(world, world.page) is not None


async def test_a_build_of_jenkins_that_goes_on_says_so() -> None:
    with pytest.raises(NoFailedBuild, match="run 3 of acme/api is RUNNING"):
        await linked(jenkins(), "job/acme/job/api/lastBuild/")


async def test_the_runs_of_all_branches_of_a_project_are_listed() -> None:
    world = jenkins()
    assert isinstance(world.fake, FakeJenkins)
    world.fake.branches = [{"name": "fix%2Fpool", "builds": world.fake.builds}, {"name": "folder"}]
    world.fake.builds = []
    async with opened(world) as builds:
        found = await builds.last_failure("api", START.replace(hour=10))
    assert found is not None
    assert found.run == "fix%2Fpool/2"


def noted(message: str, path: str = ".github", level: str = "failure") -> dict[str, Any]:
    return {"path": path, "annotation_level": level, "message": message}


LOST = "The hosted runner lost communication with the server."


@pytest.mark.parametrize("log", ["ok 1\nok 2\n", None])
@pytest.mark.parametrize("conclusion", ["failure", "cancelled"])
async def test_a_job_of_github_whose_runner_was_lost_says_so_with_and_without_a_log(
    conclusion: str, log: str | None
) -> None:
    world, fake = rerun("failure")
    fake.jobs[""] = [job(31, "deploy", conclusion)]
    fake.logs["31"] = log
    fake.annotations["31"] = [noted("Node.js 16 is deprecated", level="warning"), noted(LOST)]
    assert (await ended(world, "acme/api/actions/runs/2")).end is End.RUNNER_LOST


async def test_what_a_tool_noted_in_a_file_of_the_repository_is_not_told_by_the_runner() -> None:
    world, fake = rerun()
    fake.annotations["31"] = [noted(LOST, "src/agent.ts"), noted("Process completed with exit code 1.")]
    build = await linked(world, "acme/api/actions/runs/2")
    assert build is not None
    assert build_end(build.log, build.stated) is None


async def test_a_log_that_is_gone_is_no_lost_runner_unless_the_server_says_so() -> None:
    world, fake = rerun()
    fake.logs["31"] = None
    with pytest.raises(NoFailedBuild, match="or its log, is gone"):
        await linked(world, "acme/api/actions/runs/2")


@pytest.mark.parametrize(
    ("reason", "end"),
    [("runner_system_failure", End.RUNNER_LOST), ("job_execution_timeout", End.OUT_OF_TIME)],
)
async def test_the_reason_that_gitlab_states_is_how_the_job_ended(reason: str, end: End) -> None:
    world = retried()
    assert isinstance(world.fake, FakeGitLab)
    world.fake.jobs["84"] |= {"failure_reason": reason}
    assert (await ended(world, "acme/api/-/jobs/84")).end is end


async def test_a_cancelled_job_of_azure_devops_whose_agent_was_lost_failed_by_it() -> None:
    world = attempted()
    assert isinstance(world.fake, FakeAzureDevOps)
    world.fake.earlier["old"][3] |= {
        "issues": [
            {"type": "warning", "message": "The image is deprecated."},
            {"type": "error", "message": "We stopped hearing from agent pier-4."},
        ]
    }
    found = await ended(world, "Shop/_build/results?buildId=2&view=logs&j=j9")
    assert (found.end, found.text) == (End.RUNNER_LOST, "We stopped hearing from agent pier-4.")


async def test_an_aborted_build_of_jenkins_whose_agent_was_removed_failed_by_it() -> None:
    world = jenkins()
    assert isinstance(world.fake, FakeJenkins)
    world.fake.builds = [each | {"result": "ABORTED"} for each in world.fake.builds]
    world.fake.log = "+ make test\nok 1\nAgent pier-4 was deleted; cancelling node body\nFinished: ABORTED\n"
    assert (await ended(world, world.page)).end is End.RUNNER_LOST


async def ended(world: World, page: str) -> BuildEnd:
    build = await linked(world, page)
    assert build is not None
    end = build_end(build.log, build.stated)
    assert end is not None
    return end
