"""GitHub, GitLab and Azure DevOps as far as they are asked about changes, with what their APIs are documented to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from aiohttp import web

from adapters.http import Http
from adapters.readers.definition import shipped
from adapters.readers.pages import Pages
from adapters.readers.reader import Reader
from tests.fakes.recorded_reader import START
from tests.fakes.tool_servers import FakeToolServer

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
                f"/repos/acme/shop/commits/{SHA}",
                _says({**commit, "files": [{"filename": "cart/pool.yaml", "patch": PATCH}]}),
            ),
            web.get(
                "/repos/acme/shop/deployments",
                _says(
                    [{**deployment, "id": each} for each in (7, 8, 9)] + [{**deployment, "id": 6, "created_at": at(-9)}]
                ),
            ),
            *(
                web.get(f"/repos/acme/shop/deployments/{each}/statuses", _says(states))
                for each, states in {
                    6: [{"state": "success", "created_at": at(-8)}],
                    7: [{"state": "inactive", "created_at": at(40)}, {"state": "success", "created_at": at(11)}],
                    8: [{"state": "failure", "created_at": at(11)}],
                    9: [{"state": "in_progress", "created_at": at(11)}],
                }.items()
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
        root = "/api/v4/projects/{project}"
        return [
            web.get(f"{root}/repository/commits", _says([commit])),
            web.get(
                f"{root}/repository/commits/{SHA}/diff",
                _says([{"new_path": "cart/pool.yaml", "diff": PATCH}]),
            ),
            web.get(f"{root}/deployments", self._deployments),
        ]

    async def _deployments(self, request: web.Request) -> web.Response:
        """Deployment 7 succeeded; others failed, were cancelled, are blocked or go on."""
        deployment = {"sha": SHA, "ref": "v2", "updated_at": at(10), "environment": {"name": "production"}}
        states = {7: "success", 8: "failed", 9: "canceled", 10: "blocked", 11: "running", 12: "created"}
        asked = request.query.get("status")
        every = [deployment | {"id": number, "status": state} for number, state in states.items()]
        return web.json_response([each for each in every if asked in (None, each["status"])])


class FakeAzureDevOps(FakeToolServer):
    """Run 8 is the first one in the hour, 7 the one before it."""

    def routes(self) -> list[web.RouteDef]:
        def build(number: int, minutes: float, result: str) -> dict[str, Any]:
            queued = {"queueTime": at(minutes), "finishTime": at(minutes + 2)}
            definition = {"id": 12, "name": "shop"}
            named = {"id": number, "buildNumber": f"20260314.{number}", "result": result, "definition": definition}
            return named | queued | {"sourceBranch": "refs/heads/main", "sourceVersion": SHA}

        others = [build(9, 20, "failed"), build(10, 21, "canceled"), build(11, 22, "partiallySucceeded")]
        self.builds = [*others[::-1], build(8, 8, "succeeded"), build(7, -60, "succeeded")]
        files = [{"item": {"path": "/cart", "isFolder": True}}, {"item": {"path": "/cart/pool.yaml"}}]
        root = "/acme/Shop/_apis"
        return [
            web.get(f"{root}/build/builds", self._builds),
            web.get(f"{root}/build/builds/{{build}}/changes", self._changes),
            web.get(f"/acme/_apis/git/repositories/7db8/commits/{SHA}/changes", _says({"changes": files})),
        ]

    async def _builds(self, request: web.Request) -> web.Response:
        query = request.query
        earliest, result = query.get("minTime", ""), query.get("resultFilter", "")
        builds = [each for each in self.builds if each["queueTime"] >= earliest and result in ("", each["result"])]
        return web.json_response({"value": builds})

    async def _changes(self, request: web.Request) -> web.Response:
        commit = {
            "id": SHA,
            "message": "Smaller pool\n\nFrom 40 to 4.",
            "type": "TfsGit",
            "author": {"displayName": "Asha", "id": "8c8c"},
            "timestamp": at(5),
            "location": f"{request.url.origin()}/acme/_apis/git/repositories/7db8/commits/{SHA}",
            "displayUri": f"{request.url.origin()}/acme/Shop/_git/cart%20shop/commit/{SHA}",
        }
        is_first = request.match_info["build"] == "8"
        return web.json_response({"count": int(is_first), "value": [commit] if is_first else []})


def changes_of(kind: str, http: Http, projects: Mapping[str, str]) -> Reader:
    """Return the reader of the commits and deployments of projects, as the definition of their server describes it."""
    return Reader("changes", Pages(http), shipped()[kind], projects)


def _says(answer: object) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(answer)

    return handler
