"""Build servers with three runs each: GitHub, GitLab, Azure DevOps, Jenkins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.http import Http
from adapters.readers.builds import Builds
from adapters.readers.definition import shipped
from adapters.readers.pages import Pages
from tests.fakes.tool_servers import FakeAzureDevOps, FakeGitHub, FakeGitLab, FakeJenkins, FakeToolServer

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
SHA = "4f2c9a1b77aa0099"


@dataclass(slots=True)
class World:
    """Three runs: 3 began after the window, 2 failed, 1 succeeded."""

    fake: FakeToolServer
    kind: str
    project: str
    step: str
    log: str
    page: str  # of run 2, below the server's address
    base: str = ""  # the path of the server's API
    address: str = ""

    def builds(self, http: Http, project: str = "") -> Builds:
        return builds_of(self.kind, http, {"api": project or self.project})


def builds_of(kind: str, http: Http, projects: Mapping[str, str]) -> Builds:
    """Return the builds of a server as its definition describes them."""
    return Builds("ci", Pages(http), shipped()[kind], projects)


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
    return World(fake, "github_actions", "acme/api", "build: Run tests", "E   assert 1 == 2", "acme/api/actions/runs/2")


def gitlab() -> World:
    def pipeline(number: int, minute: int, status: str) -> dict[str, object]:
        at = f"2026-03-14T{9 + minute // 60:02d}:{minute % 60:02d}:00.000Z"
        return {"id": number, "status": status, "ref": "main", "sha": SHA, "source": "push", "created_at": at}

    fake = FakeGitLab([pipeline(3, 75, "success"), pipeline(2, 30, "failed"), pipeline(1, 10, "success")])
    return World(
        fake, "gitlab_ci", "acme/api", "test: unit (script_failure)", "E   assert 1 == 2", "acme/api/-/pipelines/2"
    )


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
    return World(fake, "jenkins", "acme/api", "console", "E   assert 1 == 2", "job/acme/job/api/2/console")


def azure() -> World:
    def build(number: int, minute: int, result: str | None, definition: int = 12) -> dict[str, Any]:
        return {
            "id": number,
            "buildNumber": f"20260314.{number}",
            "status": "completed" if result else "inProgress",
            "queueTime": f"2026-03-14T{9 + minute // 60:02d}:{minute % 60:02d}:00.0000000Z",
            "sourceBranch": "refs/heads/main",
            "sourceVersion": SHA,
            "definition": {"id": definition, "name": "api", "project": {"name": "Shop"}},
            "_links": {"web": {"href": f"https://dev.azure.com/acme/Shop/_build/results?buildId={number}"}},
        } | ({"result": result} if result else {})

    fake = FakeAzureDevOps([build(3, 75, None), build(2, 30, "failed"), build(1, 10, "succeeded")])
    page = "Shop/_build/results?buildId=2&view=logs&j=j1&t=t2"
    return World(fake, "azure_devops", "Shop/12", "build: Run tests", "E   assert 1 == 2", page, base="/acme")
