"""Loki, Kubernetes, GitHub, GitLab, Azure DevOps and Jenkins, as far as their documentation says how they answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import Http, Token
from core.ports import LogLine
from tests.fakes.refusals import Refusals, as_middleware

TOKEN = "Bearer tool-token"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FakeToolServer(Refusals):
    """A server that lets in whoever has the token."""

    def app(self) -> web.Application:
        @web.middleware
        async def door(request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
            if request.headers.get("Authorization") != TOKEN:
                return web.json_response({"message": "Unauthorized"}, status=401)
            return await handler(request)

        app = web.Application(middlewares=[as_middleware(self), door])
        app.add_routes(self.routes())
        return app

    def routes(self) -> list[web.RouteDef]:
        return []


@asynccontextmanager
async def reached(
    server: FakeToolServer, *, token: str = TOKEN, elsewhere: frozenset[str] = frozenset(), base: str = ""
) -> AsyncIterator[Http]:
    """The way to a server on loopback."""
    served = TestServer(server.app())
    await served.start_server()
    try:
        async with aiohttp.ClientSession() as session:
            yield Http("the server", str(served.make_url(base)), session, Token(token), elsewhere=elsewhere)
    finally:
        await served.close()


def nanoseconds(at: datetime) -> int:
    return round((at - EPOCH).total_seconds() * 1e6) * 1_000


class FakeLoki(FakeToolServer):
    """Streams by their labels. It gives at most `most` entries in one answer, the newest first."""

    def __init__(self, lines: Sequence[LogLine] = (), most: int = 5_000) -> None:
        super().__init__()
        self.lines = lines
        self.most = most

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/loki/api/v1/query_range", self._query)]

    async def _query(self, request: web.Request) -> web.Response:
        query = request.query
        start, end = int(query["start"]), int(query["end"])
        size = min(int(query["limit"]), self.most)
        found = [
            (nanoseconds(line.at), line)
            for line in self.lines
            if f'{{app="{line.service}"}}' == query["query"] and start <= nanoseconds(line.at) < end
        ]
        newest = sorted(found, key=lambda each: each[0], reverse=True)[:size]
        levels = dict.fromkeys(line.level for _, line in newest)
        result = [
            {
                "stream": {"app": "any", "level": level.lower()},
                "values": [[str(at), line.text] for at, line in newest if line.level == level],
            }
            for level in levels
        ]
        return web.json_response({"status": "success", "data": {"resultType": "streams", "result": result}})


class FakeKubernetes(FakeToolServer):
    """One namespace, `live`, and `default` with the events of nodes. Lists come in pages of `most`."""

    groups = ("autoscaling/v2", "keda.sh/v1alpha1", "policy/v1")

    def __init__(self, lines: Sequence[LogLine] = (), most: int = 500) -> None:
        super().__init__()
        self.lines = lines
        self.most = most
        self.events: list[dict[str, Any]] = []
        self.statuses: dict[str, dict[str, Any]] = {}
        self.without_log: frozenset[str] = frozenset()  # pods that have not started
        self.pods: list[dict[str, Any]] = []  # besides those of the lines and statuses
        self.sets: dict[str, list[dict[str, Any]]] = {
            kind: [] for kind in ("replicasets", "statefulsets", "daemonsets", "jobs")
        }
        self.events_of_nodes: list[dict[str, Any]] = []
        self.objects: dict[str, list[dict[str, Any]]] = {
            "nodes": []
        }  # by the last part of their path; other kinds are refused
        self.logs: dict[tuple[str, str, str], str] = {}  # by pod, container and "previous", if it is that

    def routes(self) -> list[web.RouteDef]:
        base = "/api/v1/namespaces/live"
        return [
            web.get("/apis/apps/v1/namespaces/live/{kind}", self._sets),
            web.get("/apis/batch/v1/namespaces/live/{kind}", self._sets),
            *(web.get(f"/apis/{group}/namespaces/live/{{kind}}", self._objects) for group in self.groups),
            web.get("/api/v1/namespaces/default/events", self._events_of_nodes),
            web.get(f"{base}/pods", self._pods),
            web.get(f"{base}/events", self._events),
            web.get(f"{base}/pods/{{pod}}/log", self._log),
            web.get(f"{base}/{{kind}}", self._objects),
            web.get("/api/v1/{kind}", self._objects),
            web.get("/apis/storage.k8s.io/v1/{kind}", self._objects),
        ]

    async def _pods(self, request: web.Request) -> web.Response:
        service = request.query["labelSelector"].removeprefix("app=")
        known = {line.service for line in self.lines} | self.statuses.keys()
        pods = [
            {
                "metadata": {"name": f"{service}-0", "namespace": "live"},
                "spec": {
                    "nodeName": "node-1",
                    "containers": [{"name": "main", "resources": {"limits": {"memory": "512Mi"}}}],
                },
                "status": self.statuses.get(service, {"phase": "Running"}),
            }
        ]
        others = [each for each in self.pods if each["metadata"].get("labels", {}).get("app", service) == service]
        return self._page(request, [*(pods if service in known else []), *others])

    async def _sets(self, request: web.Request) -> web.Response:
        assert request.query["labelSelector"]
        known = self.sets | self.objects
        return self._page(request, known.get(request.match_info["kind"], []))

    async def _objects(self, request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        if kind not in self.objects:
            return web.json_response({"kind": "Status", "reason": "Forbidden", "code": 403}, status=403)
        return self._page(request, self.objects[kind])

    async def _events(self, request: web.Request) -> web.Response:
        return self._page(request, self.events)

    async def _events_of_nodes(self, request: web.Request) -> web.Response:
        assert request.query["fieldSelector"] == "involvedObject.kind=Node"
        return self._page(request, self.events_of_nodes)

    def _page(self, request: web.Request, items: Sequence[dict[str, Any]]) -> web.Response:
        start = int(request.query.get("continue", "0"))
        size = min(self.most, int(request.query["limit"]))
        following = str(start + size) if start + size < len(items) else ""
        return web.json_response({"metadata": {"continue": following}, "items": items[start : start + size]})

    async def _log(self, request: web.Request) -> web.Response:
        if request.match_info["pod"] in self.without_log:
            return web.json_response({"kind": "Status", "reason": "BadRequest", "code": 400}, status=400)
        instance = "previous" if request.query.get("previous") == "true" else ""
        if self.logs:
            log = self.logs.get((request.match_info["pod"], request.query["container"], instance))
            missing = {"kind": "Status", "message": f"no {instance} log of {request.query['container']}"}
            return web.json_response(missing, status=400) if log is None else web.Response(text=log)
        service = request.match_info["pod"].removesuffix("-0")
        since = datetime.fromisoformat(request.query["sinceTime"])
        written = [
            f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond:06d}000Z {part}"
            for line in sorted(self.lines, key=lambda line: line.at)
            if line.service == service and line.at >= since
            for part in f"{line.level} {line.text}".splitlines()
        ]
        return web.Response(text="\n".join(written[-int(request.query["tailLines"]) :]))


def event(reason: str, message: str, at: str, pod: str = "api-0", kind: str = "Warning") -> dict[str, Any]:
    involved = {"kind": "Pod", "name": pod}
    return {
        "type": kind,
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
        "involvedObject": involved,
        "count": 3,
    }


class FakeGitHub(FakeToolServer):
    """Runs of `acme/api`; the log of a job lies where `log_url` points."""

    log_url = ""

    def __init__(self, runs: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__()
        self.runs = runs
        steps = [{"name": "Set up", "conclusion": "success"}, {"name": "Run tests", "conclusion": "failure"}]
        self.jobs: dict[str, list[dict[str, Any]]] = {  # by attempt, empty for the latest
            "": [
                {"id": 70, "name": "lint", "conclusion": "success", "steps": []},
                {"id": 71, "name": "build", "conclusion": "failure", "steps": steps},
            ]
        }
        self.logs: dict[str, str | None] = {}  # of jobs whose log does not lie elsewhere; None if it is gone
        self.annotations: dict[str, list[dict[str, Any]]] = {}  # of jobs; others may not be read

    def routes(self) -> list[web.RouteDef]:
        base = "/repos/acme/api/actions"
        return [
            web.get("/repos/acme/api/check-runs/{job}/annotations", self._annotations),
            web.get(f"{base}/runs", self._runs),
            web.get(f"{base}/runs/{{run}}", self._run),
            web.get(f"{base}/runs/{{run}}/jobs", self._jobs),
            web.get(f"{base}/runs/{{run}}/attempts/{{attempt}}/jobs", self._jobs),
            web.get(f"{base}/jobs/{{job}}", self._job),
            web.get(f"{base}/jobs/{{job}}/logs", self._log),
        ]

    async def _job(self, request: web.Request) -> web.Response:
        known = [job for jobs in self.jobs.values() for job in jobs if str(job["id"]) == request.match_info["job"]]
        missing = {"message": "Not Found"}
        return web.json_response(known[0] | {"run_id": 2}) if known else web.json_response(missing, status=404)

    async def _runs(self, request: web.Request) -> web.Response:
        newest = [run for run in self.runs if f"<={run['created_at']}" <= request.query["created"]]
        return web.json_response(
            {"total_count": len(newest), "workflow_runs": newest[: int(request.query["per_page"])]}
        )

    async def _run(self, request: web.Request) -> web.Response:
        found = [run for run in self.runs if str(run["id"]) == request.match_info["run"]]
        return web.json_response(found[0]) if found else web.json_response({"message": "Not Found"}, status=404)

    async def _jobs(self, request: web.Request) -> web.Response:
        jobs = self.jobs[request.match_info.get("attempt", "")]
        size, page = int(request.query["per_page"]), int(request.query["page"])
        return web.json_response({"total_count": len(jobs), "jobs": jobs[size * (page - 1) : size * page]})

    async def _annotations(self, request: web.Request) -> web.Response:
        noted = self.annotations.get(request.match_info["job"])
        missing = {"message": "Resource not accessible by personal access token"}
        return web.json_response(missing, status=403) if noted is None else web.json_response(noted)

    async def _log(self, request: web.Request) -> web.Response:
        if (job := request.match_info["job"]) not in self.logs:
            raise web.HTTPFound(self.log_url)
        log = self.logs[job]
        return web.Response(status=404) if log is None else web.Response(text=log)


class FakeGitLab(FakeToolServer):
    """Pipelines of `acme/api`."""

    def __init__(self, pipelines: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__()
        self.pipelines = pipelines
        failed = {"stage": "test", "status": "failed"}
        self.jobs: dict[str, dict[str, Any]] = {  # by id; of two with one name, the later is a retry
            "80": failed | {"id": 80, "name": "flaky", "allow_failure": True},
            "81": failed | {"id": 81, "name": "unit", "failure_reason": "script_failure"},
        }
        self.bridges: dict[str, list[dict[str, Any]]] = {}  # failed jobs that started a pipeline, by pipeline
        self.logs: dict[str, str] = {}

    def routes(self) -> list[web.RouteDef]:
        base = "/api/v4/projects/acme%2Fapi"
        return [
            web.get(f"{base}/pipelines", self._pipelines),
            web.get(f"{base}/pipelines/{{pipeline}}", self._pipeline),
            web.get(f"{base}/pipelines/{{pipeline}}/jobs", self._jobs),
            web.get(f"{base}/jobs/{{job}}", self._job),
            web.get(f"{base}/jobs/{{job}}/trace", self._trace),
            web.get(f"{base}/pipelines/{{pipeline}}/bridges", self._bridges),
        ]

    async def _bridges(self, request: web.Request) -> web.Response:
        assert request.query["scope[]"] == "failed"
        return web.json_response(self.bridges.get(request.match_info["pipeline"], []))

    async def _pipelines(self, request: web.Request) -> web.Response:
        before = request.query["created_before"]
        return web.json_response([each for each in self.pipelines if each["created_at"] < before])

    async def _pipeline(self, request: web.Request) -> web.Response:
        found = [each for each in self.pipelines if str(each["id"]) == request.match_info["pipeline"]]
        return web.json_response(found[0]) if found else web.json_response({"message": "Not Found"}, status=404)

    async def _job(self, request: web.Request) -> web.Response:
        job = self.jobs.get(request.match_info["job"])
        missing = {"message": "404 Not found"}
        return (
            web.json_response(missing, status=404) if job is None else web.json_response(job | {"pipeline": {"id": 2}})
        )

    async def _jobs(self, request: web.Request) -> web.Response:
        assert request.query["scope[]"] == "failed"
        inside = [
            job
            for job in self.jobs.values()
            if job.get("in", request.match_info["pipeline"]) == request.match_info["pipeline"]
        ]
        latest = {job["name"]: job for job in inside}
        return web.json_response([job for job in latest.values() if job["status"] == "failed"])

    async def _trace(self, request: web.Request) -> web.Response:
        return web.Response(text=self.logs.get(request.match_info["job"], "collecting\nE   assert 1 == 2\n"))


class FakeJenkins(FakeToolServer):
    """Builds of the job `api` in the folder `acme`, and of its branch `fix%2Fpool`."""

    log = "Started by timer\nE   assert 1 == 2\nFinished: FAILURE\n"

    def __init__(self, builds: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__()
        self.builds = builds
        self.branches: list[dict[str, Any]] = []  # of a multibranch project, instead of builds of its own

    def routes(self) -> list[web.RouteDef]:
        base = "/job/acme/job/api"
        return [
            web.get(f"{base}/api/json", self._job),
            *(
                web.get(f"{base}{branch}/{{build}}/{page}", answer)
                for branch in ("", "/job/fix%252Fpool")
                for page, answer in (("api/json", self._build), ("consoleText", self._console))
            ),
        ]

    async def _job(self, request: web.Request) -> web.Response:
        assert request.query["tree"].startswith("builds[")
        if self.branches:
            return web.json_response({"_class": "org…WorkflowMultiBranchProject", "jobs": self.branches})
        return web.json_response({"_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob", "builds": self.builds})

    async def _build(self, request: web.Request) -> web.Response:
        name = request.match_info["build"]
        named = {"lastBuild": lambda _: True, "lastFailedBuild": lambda build: build["result"] == "FAILURE"}
        is_named = named.get(name, lambda build: str(build["number"]) == name)
        of_branches = [build for branch in self.branches for build in branch.get("builds", ())]
        found = [build for build in (*self.builds, *of_branches) if is_named(build)]
        return web.json_response(found[0]) if found else web.Response(status=404)

    async def _console(self, request: web.Request) -> web.Response:
        return web.Response(text=self.log)


class FakeAzureDevOps(FakeToolServer):
    """Builds of the pipeline 12 of the project `Shop`; the timeline of each names a task of the job `build` that failed."""

    def __init__(self, builds: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__()
        self.builds = builds
        self.earlier: dict[str, list[dict[str, Any]]] = {}  # the timelines of earlier attempts by id

    def routes(self) -> list[web.RouteDef]:
        base = "/acme/Shop/_apis/build/builds"
        return [
            web.get(base, self._builds),
            web.get(f"{base}/{{build}}", self._build),
            web.get(f"{base}/{{build}}/timeline", self._timeline),
            web.get(f"{base}/{{build}}/timeline/{{id}}", self._earlier),
            web.get(f"{base}/{{build}}/logs/{{log}}", self._log),
        ]

    async def _builds(self, request: web.Request) -> web.Response:
        query = request.query
        assert (query["api-version"], query["queryOrder"], query["definitions"]) == ("7.1", "queueTimeDescending", "12")
        found = [build for build in self.builds if build["queueTime"] <= query["maxTime"]][: int(query["$top"])]
        return web.json_response({"count": len(found), "value": found})

    async def _build(self, request: web.Request) -> web.Response:
        found = [build for build in self.builds if str(build["id"]) == request.match_info["build"]]
        if not found:
            return web.json_response({"typeKey": "BuildNotFoundException"}, status=404)
        return web.json_response(found[0])

    async def _earlier(self, request: web.Request) -> web.Response:
        return web.json_response({"records": self.earlier[request.match_info["id"]]})

    async def _timeline(self, _: web.Request) -> web.Response:
        def record(id_: str, kind: str, name: str, parent: str | None, result: str, log: int | None) -> dict[str, Any]:
            reference = {"id": log, "type": "Container", "url": "https://dev.azure.com/log"} if log else None
            named = {"id": id_, "parentId": parent, "type": kind, "name": name, "state": "completed"}
            return named | {"result": result, "log": reference, "startTime": "2026-03-14T09:30:00.1Z", "order": 1}

        records = [
            record("t1", "Task", "Checkout", "j1", "succeeded", 4),
            record("t3", "Task", "Lint", "j1", "succeededWithIssues", 5),
            record("t2", "Task", "Run tests", "j1", "failed", 6),
            record("j1", "Job", "build", "p1", "failed", 7),
            record("p1", "Phase", "build", "s1", "failed", None),
            record("s1", "Stage", "__default", None, "failed", None)
            | {"previousAttempts": [{"attempt": 1, "timelineId": id_} for id_ in self.earlier]},
        ]
        return web.json_response({"records": records, "id": "tl1", "changeId": 9})

    async def _log(self, request: web.Request) -> web.Response:
        if request.match_info["log"] != "6":
            return web.json_response({"count": 1, "value": [f"log {request.match_info['log']}"]})
        lines = ["2026-03-14T09:30:01.1234567Z collecting", "2026-03-14T09:30:02.1000000Z E   assert 1 == 2"]
        return web.json_response({"count": len(lines), "value": lines})
