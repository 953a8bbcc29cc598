"""One part of many fails, for every reader: what was read is kept, and the rest is named with the reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from adapters.tools.alertmanager import Alertmanager, PrometheusAlerts
from adapters.tools.code_repository import GitHistory
from adapters.tools.files import ChangeFiles, LogFiles, MetricFiles
from adapters.tools.kubernetes import Kubernetes, Workload
from adapters.tools.section import GRACE, ParsedFiles, kept
from core.model.alert import AlertStatus
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.ports import ANSWER_BY, Partial, TimeWindow
from tests.cases import every_case
from tests.fakes.change_servers import changes_of
from tests.fakes.checkout import commit, git
from tests.fakes.readers import reader
from tests.fakes.tool_servers import FakeToolServer, nanoseconds, reached
from tests.samples import alert, incident

MAX_SERIES = 500
START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))
SHA = "9b03d51c2f7ae4415d0c7f2b88a1c3e5d7f90112"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
REASON = {"message": "it is being moved (5000 > 1000)"}


def at(minutes: float) -> str:
    return (START + timedelta(minutes=minutes)).isoformat()


class Answers(FakeToolServer):
    """Answers each path with JSON, with a status and JSON, or as a function does."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__()
        self.answers = answers

    def routes(self) -> list[web.RouteDef]:
        async def handler(request: web.Request) -> web.StreamResponse:
            answer = self.answers.get(request.path, (404, {"message": "Not Found"}))
            if callable(answer):
                return await cast("Answer", answer)(request)
            status, body = answer if isinstance(answer, tuple) else (200, answer)
            return web.json_response(body, status=status)

        return [web.route("*", "/{path:.*}", handler)]


def gaps(found: Sequence[object]) -> list[str]:
    assert isinstance(found, Partial)
    return [gap.text for gap in found.gaps]


# Repositories


def github(project: str) -> dict[str, Any]:
    person = {"name": "Asha", "date": at(5)}
    one = {"sha": SHA, "commit": {"message": "Smaller pool", "author": person, "committer": person}}
    deployment = {"id": 7, "sha": SHA, "ref": "v2", "environment": "production", "created_at": at(10)}
    root = f"/repos/{project}"
    return {
        f"{root}/commits": [one],
        f"{root}/commits/{SHA}": {**one, "files": [{"filename": "pool.yaml", "patch": "+4"}]},
        f"{root}/deployments": [deployment],
        f"{root}/deployments/7/statuses": [{"state": "success", "created_at": at(11)}],
    }


def gitlab(project: str) -> dict[str, Any]:
    one = {"id": SHA, "message": "Smaller pool", "author_name": "Asha", "committed_date": at(5)}
    root = f"/api/v4/projects/{project}"
    return {
        f"{root}/repository/commits": [one],
        f"{root}/repository/commits/{SHA}/diff": [{"new_path": "pool.yaml", "diff": "+4"}],
        f"{root}/deployments": [{"id": 7, "sha": SHA, "ref": "v2", "updated_at": at(10)}],
    }


def azure(project: str) -> dict[str, Any]:
    team, _, pipeline = project.partition("/")
    definition = {"id": int(pipeline), "name": "shop"}
    run = {"id": 8, "buildNumber": "8", "result": "succeeded", "definition": definition, "sourceVersion": SHA}
    before = {**run, "id": 7, "queueTime": at(-60)}
    one = {"id": SHA, "message": "Smaller pool", "timestamp": at(5), "author": {"displayName": "Asha"}}
    root = f"/acme/{team}/_apis/build"
    return {
        f"{root}/builds": {"value": [{**run, "queueTime": at(8), "finishTime": at(10)}, before]},
        f"{root}/builds/7/changes": {"value": []},
        f"{root}/builds/8/changes": {"value": [one]},
    }


HOSTS: dict[str, tuple[Callable[[str], dict[str, Any]], str, str, str]] = {
    "github": (github, "github_actions", "acme/shop", "acme/gone"),
    "gitlab": (gitlab, "gitlab_ci", "acme/shop", "acme/gone"),
    "azure": (azure, "azure_devops", "Shop/12", "Gone/12"),
}
PARTS = [
    ("github", "/repos/acme/shop/deployments", "deployments of acme/shop", 1),
    ("github", "/repos/acme/shop/commits", "commits of acme/shop", 1),
    ("github", f"/repos/acme/shop/commits/{SHA}", f"diffs of {SHA[:12]}", 2),
    ("github", "/repos/acme/shop/deployments/7/statuses", "statuses of deployment 7", 2),
    ("gitlab", "/api/v4/projects/acme/shop/deployments", "deployments of acme/shop", 1),
    ("gitlab", "/api/v4/projects/acme/shop/repository/commits", "commits of acme/shop", 1),
    ("gitlab", f"/api/v4/projects/acme/shop/repository/commits/{SHA}/diff", f"diffs of {SHA[:12]}", 2),
    ("azure", "/acme/Shop/_apis/build/builds/8/changes", "commits of Shop/12 of 8", 1),
    ("azure", "/acme/Shop/_apis/build/builds/8/changes", "changes of run 8", 1),
]


async def changes(host: str, answers: dict[str, Any], services: dict[str, str]) -> list[Any]:
    async with reached(Answers(answers), base="/acme" if host == "azure" else "") as http:
        return await changes_of(HOSTS[host][1], http, services).changes(HOUR)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("status", [404, 409, 500])
async def test_what_one_repository_answers_is_kept_when_another_does_not(host: str, status: int) -> None:
    answers, _, here, gone = HOSTS[host]
    refusing = dict.fromkeys(answers(gone), (status, REASON))
    found = await changes(host, answers(here) | refusing, {"shop": here, "old": gone})
    assert {change.kind for change in found} == {"commit", "deploy"}
    unread = gaps(found)
    assert {text.partition(" of ")[0] for text in unread} == {"changes: commits", "changes: deployments"}
    assert all(gone in text and str(status) in text and REASON["message"] in text for text in unread)


@pytest.mark.parametrize("status", [403, 422, 500])
@pytest.mark.parametrize(("host", "path", "part", "count"), PARTS)
async def test_one_kind_of_changes_is_kept_when_another_is_refused(
    host: str, path: str, part: str, count: int, status: int
) -> None:
    answers, _, here, _ = HOSTS[host]
    found = await changes(host, answers(here) | {path: (status, REASON)}, {"shop": here})
    assert len(found) == count
    unread = gaps(found)
    assert len([text for text in unread if part in text]) == 1
    assert all(REASON["message"] in text for text in unread)


@pytest.mark.parametrize(("host", "path", "part", "count"), [each for each in PARTS if "diff" not in each[2]][::2])
async def test_the_changes_are_kept_when_one_of_a_list_is_malformed(
    host: str, path: str, part: str, count: int
) -> None:
    answers, _, here, _ = HOSTS[host]
    everything = answers(here)
    listed = everything[path]
    more = {"value": [{"odd": 1}, *listed["value"]]} if host == "azure" else [{"odd": 1}, *listed]
    found = await changes(host, everything | {path: more}, {"shop": here})
    assert {change.kind for change in found} == {"commit", "deploy"}
    assert any("left out (1 of 2 in an unexpected format" in text for text in gaps(found)) or count == 2


async def test_a_commit_of_two_runs_of_azure_devops_is_told_once() -> None:
    answers = azure("Shop/12")
    answers["/acme/Shop/_apis/build/builds/7/changes"] = answers["/acme/Shop/_apis/build/builds/8/changes"]
    found = await changes("azure", answers, {"shop": "Shop/12"})
    assert [change.kind for change in found].count("commit") == 1


async def test_every_repository_that_refuses_makes_the_changes_unavailable() -> None:
    with pytest.raises(ToolUnavailable, match="HTTP status 404: Not Found"):
        await changes("github", {}, {"shop": "acme/shop", "old": "acme/gone"})


async def test_a_deployment_of_github_that_may_have_succeeded_is_told_as_that() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "v2 to production, whose success is not known"),
        (None, "v2 to production, whose success is not known"),
        ((500, REASON), "v2 to production, whose success is not known"),
        ([{"state": "success"}], "v2 to production"),
        ([{"state": "failure"}], ""),
        ([{"state": "failure"}, 7], "v2 to production, whose success is not known"),
        ([{"state": "queued", "created_at": at(11)}], ""),
    ]
    for statuses, title in cases:
        answers = github("acme/shop") | {"/repos/acme/shop/deployments/7/statuses": statuses}
        found = await changes("github", answers, {"shop": "acme/shop"})
        assert [change.title for change in found if change.kind == "deploy"] == ([title] if title else []), (
            statuses,
            title,
        )


async def test_the_statuses_of_deployments_long_before_or_after_the_window_are_not_requested() -> None:
    deployment = github("acme/shop")["/repos/acme/shop/deployments"][0]
    times = {1: at(-24 * 60), 2: at(-30), 3: at(5), 4: at(90)}
    server = Answers(
        github("acme/shop")
        | {
            "/repos/acme/shop/deployments": [
                {**deployment, "id": id_, "created_at": time} for id_, time in times.items()
            ]
        }
        | {f"/repos/acme/shop/deployments/{id_}/statuses": [{"state": "success", "created_at": at(6)}] for id_ in times}
    )
    async with reached(server) as http:
        found = await changes_of("github_actions", http, {"shop": "acme/shop"}).changes(HOUR)
    assert {change.id for change in found if change.kind == "deploy"} == {"deployment 2", "deployment 3"}
    assert sorted(path for path in server.requests if "statuses" in path) == [
        f"/repos/acme/shop/deployments/{id_}/statuses?per_page=100" for id_ in (2, 3)
    ]


async def test_of_very_many_deployments_the_last_ones_are_looked_at_and_the_others_kept() -> None:
    deployment = github("acme/shop")["/repos/acme/shop/deployments"][0]
    many = [{**deployment, "id": id_} for id_ in range(40, 0, -1)]
    answers = {f"/repos/acme/shop/deployments/{id_}/statuses": [{"state": "failure"}] for id_ in range(1, 41)}
    found = await changes(
        "github", github("acme/shop") | answers | {"/repos/acme/shop/deployments": many}, {"shop": "acme/shop"}
    )
    assert {change.id for change in found if change.kind == "deploy"} == {f"deployment {id_}" for id_ in range(1, 21)}


def longer(host: str, count: int) -> dict[str, Any]:
    """As many commits and deployments as a host gives, newest first."""
    answers, _, here, _ = HOSTS[host]
    given = answers(here)
    for path, body in list(given.items()):
        items = body["value"] if isinstance(body, dict) and "value" in body else body
        if path.endswith(("commits", "8/changes", "deployments", "builds")):
            several = [{**items[0], "id": 900 - number} for number in range(count)]
            if path.endswith(("commits", "changes")):
                several = [
                    {**items[0], "sha": f"{number:012x}{0:028}", "id": f"{number:012x}{0:028}"}
                    for number in range(count)
                ]
            given[path] = {"value": several} if isinstance(body, dict) else several
    if host == "azure":
        of_runs = {f"/acme/Shop/_apis/build/builds/{900 - number}/changes": {"value": []} for number in range(count)}
        given = {**of_runs, **given, "/acme/Shop/_apis/build/builds/900/changes": given[PARTS[-1][1]]}
    return given


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (
            "github",
            {
                "commits of acme/shop": "what is on further pages",
                "deployments of acme/shop": "what is on further pages",
                "diffs of commits of acme/shop": "38 of 50: ",
                "statuses of deployments of acme/shop": "30 of 50: deployment 8",
            },
        ),
        (
            "gitlab",
            {
                "commits of acme/shop": "what is on further pages",
                "deployments of acme/shop": "what is on further pages",
                "diffs of commits of acme/shop": "38 of 50: ",
            },
        ),
        (
            "azure",
            {
                "commits of Shop/12": "30 of 50: 880, 879, ",
                "changes of deployments of Shop/12": "45 of 50: run 895, run 894, ",
                "files of commits of Shop/12": "38 of 50: 00000000000c, ",
            },
        ),
    ],
)
async def test_what_is_left_out_of_many_commits_and_deployments_is_counted(host: str, expected: dict[str, str]) -> None:
    project = HOSTS[host][2]
    found = await changes(host, longer(host, 50), {"shop": project})
    for part, why in expected.items():
        assert any(text.startswith(f"changes: {part}: left out ({why}") for text in gaps(found)), gaps(found)
    few = await changes(host, longer(host, 4), {"shop": project})
    assert not [text for text in gaps(few) if "left out" in text]


# Git checkouts


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, 5, "Smaller pool", "pool.py")
    return folder


@pytest.mark.parametrize("broken", ["no checkout", "empty", "missing"])
async def test_the_commits_of_one_checkout_are_kept_when_another_cannot_be_read(
    broken: str, checkout: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    if broken != "missing":
        other.mkdir()
    if broken == "empty":
        git(other, "init", "-q", "-b", "main")
    found = await GitHistory("git", {"api": checkout, "other": other}).changes(HOUR)
    assert [change.title for change in found] == ["Smaller pool"]
    assert [str(other) in text for text in gaps(found)] == [True]


async def test_the_commits_of_a_checkout_are_kept_when_their_diffs_are_too_large(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(checkout, 6, "Many lines\n" * 2_000, "lines.txt")
    monkeypatch.setattr("adapters.tools.section.MAX_TITLE", 20)
    monkeypatch.setattr("adapters.tools.code_repository._FORMAT", "%x1e%H%x1f%cI%x1f%an%x1f%s%x1f%x1f")
    monkeypatch.setattr("adapters.tools.code_repository.MAX_OUTPUT", 24_000)
    found = await GitHistory("git", {"api": checkout}).changes(HOUR)
    assert len(found) == 2
    assert [text.startswith(f"git: diffs of {checkout}: left out") for text in gaps(found)] == [True]


# Files


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file of the folder is deleted between its listing and its reading."""
    listed = ParsedFiles.paths

    def with_another(files: ParsedFiles[Any]) -> list[Path]:
        found = listed(files)
        return [*found, *(path.parent.parent / "deleted" / path.parent.name / path.name for path in found)]

    monkeypatch.setattr(ParsedFiles, "paths", with_another)


def written(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.usefixtures("deleted")
async def test_a_file_that_disappears_loses_only_itself(tmp_path: Path) -> None:
    written(tmp_path / "live/logs/api.log", "2026-03-14T09:05:00Z ERROR api boom")
    written(tmp_path / "live/metrics/api.csv", "timestamp,pending", "2026-03-14T09:05:00Z,4")
    written(tmp_path / "live/c/changes.jsonl", json.dumps({"id": "A", "at": at(5), "kind": "flag", "title": "On"}))
    found = (
        await LogFiles("files", tmp_path).lines("api", HOUR, 10),
        await MetricFiles("files", tmp_path).series("api", HOUR),
        await ChangeFiles("files", tmp_path).changes(HOUR),
    )
    for each in found:
        assert len(each) == 1
        (unread,) = gaps(each)
        assert "deleted" in unread
        assert "cannot be read: No such file or directory" in unread


@pytest.mark.parametrize("wrong", ["{", "[]", '{"id": "B"}', "\x00", '{"id":"A","at":"noon","kind":"k","title":"t"}'])
async def test_the_changes_of_a_file_are_kept_when_one_line_is_wrong(wrong: str, tmp_path: Path) -> None:
    right = json.dumps({"id": "A", "at": at(5), "kind": "flag", "title": "On"})
    path = written(tmp_path / "changes.jsonl", wrong, right, wrong)
    found = await ChangeFiles("files", tmp_path).changes(HOUR)
    assert [change.id for change in found] == ["A"]
    (unread,) = gaps(found)
    assert f"left out (Line 1 of {path} is not a change record" in unread
    assert "1 more" in unread


@pytest.mark.parametrize("wrong", ["yesterday,1", "2026-03-14T09:01:00,1", "total,9", ",1"])
async def test_the_metrics_of_a_file_are_kept_when_one_row_is_wrong(wrong: str, tmp_path: Path) -> None:
    rows = ("timestamp,pending", "2026-03-14T09:00:00Z,4", wrong, "2026-03-14T09:02:00Z,6")
    path = written(tmp_path / "metrics/api.csv", *rows)
    found = await MetricFiles("files", tmp_path).series("api", HOUR)
    assert [each.values for each in found] == [(4.0, 6.0)]
    assert [f"left out (1 rows, first line 3 of {path}" in text for text in gaps(found)] == [True]


# Loki

LOKI = "/loki/api/v1/query_range"


def streams(*found: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "streams", "result": list(found)}}


def stream(*minutes: float) -> dict[str, Any]:
    values = [[str(nanoseconds(START + timedelta(minutes=each))), f"request {each}"] for each in minutes]
    return {"stream": {"app": "api", "level": "info"}, "values": values}


async def logs(answer: Any, page: int = 5_000) -> list[Any]:
    async with reached(Answers({LOKI: answer})) as http:
        return await reader("loki", http, {"api": {"app": "api"}}, page=page).lines("api", HOUR, 100)


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_the_newest_records_are_kept_when_an_older_page_is_refused(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = START + timedelta(minutes=30)

    async def answer(request: web.Request) -> web.Response:
        start, end = int(request.query["start"]), int(request.query["end"])
        if start < nanoseconds(last):
            return web.Response(text="the limit of entries is exceeded (5000 > 1000)\n", status=status)
        inside = [each for each in range(60) if start <= nanoseconds(START + timedelta(minutes=each)) < end]
        return web.json_response(streams(stream(*inside[-10:])))

    async def first(request: web.Request) -> web.Response:
        monkeypatch.setattr(server, "answers", {LOKI: answer})
        return web.json_response(streams(stream(*range(50, 60))))

    server = Answers({LOKI: first})
    async with reached(server) as http:
        found = await reader("loki", http, {"api": {"app": "api"}}, page=10).lines("api", HOUR, 100)
    assert [line.text for line in found][-10:] == [f"request {each}" for each in range(50, 60)]
    assert len(found) > 10
    unread = gaps(found)
    assert unread
    assert all(text.startswith("loki: records from ") for text in unread)
    assert all("the limit of entries is exceeded (5000 > 1000)" in text for text in unread)


async def test_the_records_that_do_not_fit_into_the_pages_are_named() -> None:
    async def answer(request: web.Request) -> web.Response:
        start, end = int(request.query["start"]), int(request.query["end"])
        times = [START + timedelta(seconds=each) for each in range(3600)]
        inside = [each for each in times if start <= nanoseconds(each) < end][-2:]
        return web.json_response(streams(stream(*((each - START).total_seconds() / 60 for each in inside))))

    (unread,) = gaps(await logs(answer, page=2))
    assert unread.startswith("loki: records: left out (those before 09:59:")


@pytest.mark.parametrize(
    ("odd", "unread"),
    [
        (
            {"metric": {}, "value": [1, "2"]},
            ["loki: records: left out (1 of 2 in an unexpected format (there is no list at $.values))"],
        ),
        (
            {"stream": {}, "values": [["soon", "x"], [str(nanoseconds(START)), "y"]]},
            ["loki: records: left out (the times of 1 of 3 cannot be read: x (soon))"],
        ),
        ({"stream": {}, "values": None}, []),
    ],
)
async def test_the_other_streams_are_kept_when_one_is_malformed(odd: dict[str, Any], unread: list[str]) -> None:
    found = await logs(streams(stream(5), odd))
    assert "request 5" in [line.text for line in found]
    assert gaps(found) == unread


# Prometheus and Alertmanager


NAMELESS = "1 of 2 in an unexpected format (a series has no name)"


def matrix(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(rows)}, **more}


def row(name: str, **more: Any) -> dict[str, Any]:
    return {"metric": {"__name__": name}, "values": [[START.timestamp(), "4"]], **more}


@every_case(
    ("odd", "more", "unread"),
    [
        (
            {"metric": {"__name__": "h"}, "histograms": [[0, {"count": "3"}]]},
            {},
            "left out (native histograms are not supported: h)",
        ),
        ({"metric": None, "values": []}, {}, f"left out ({NAMELESS})"),
        ({"metric": {}, "values": [[1, "?"]]}, {}, f"left out ({NAMELESS})"),
        (row("b"), {"warnings": ["store 10.0.0.3 did\nnot answer"]}, "failed (store 10.0.0.3 did not answer)"),
        ({"metric": {"__name__": "b"}, "values": None, "histograms": None}, {"warnings": None}, ""),
    ],
)
async def test_the_other_series_are_kept_when_one_cannot_be_read(
    odd: dict[str, Any], more: dict[str, Any], unread: str
) -> None:
    async with reached(Answers({"/api/v1/query_range": matrix(row("pending"), odd, **more)})) as http:
        found = await reader("prometheus", http).series("api", HOUR)
    assert "pending" in [each.metric for each in found]
    assert gaps(found) == ([f"prometheus: series: {unread}"] if unread else [])


async def test_the_first_series_are_kept_when_there_are_too_many() -> None:
    rows = [row(f"m{number:04d}") for number in range(MAX_SERIES + 7)]
    async with reached(Answers({"/api/v1/query_range": matrix(*rows)})) as http:
        found = await reader("prometheus", http).series("api", HOUR)
    assert len(found) == MAX_SERIES
    named = ", ".join(f"m{MAX_SERIES + number:04d}" for number in range(7))
    assert gaps(found) == [f"prometheus: series: left out (7 of {MAX_SERIES + 7}: {named})"]


FIRING = replace(alert(), fingerprint="f1", labels={"alertname": "Slow"}, name="Slow", status=AlertStatus.FIRING)
INCIDENT = incident(source="alertmanager", alerts=(FIRING,))


@every_case(
    ("rules", "firing"),
    [
        ([{"name": "Slow", "alerts": None}], False),
        ([{"name": "Slow", "alerts": [{"labels": {"alertname": "Slow"}, "state": "firing"}, {"odd": 1}]}], True),
        ([{"name": "Slow", "alerts": [{"labels": {"a": "b"}, "state": "firing"}, {"odd": 1}]}], None),
        ([{"odd": 1}, {"name": "Slow", "alerts": []}], False),
        (None, None),
    ],
)
async def test_an_alert_is_judged_by_the_rules_that_could_be_read(rules: Any, *, firing: bool | None) -> None:
    groups = [{"rules": None}, {"rules": rules}]
    async with reached(Answers({"/api/v1/rules": {"data": {"groups": groups}}})) as http:
        assert (await PrometheusAlerts("prometheus", http).firing(INCIDENT)).fires is firing


@pytest.mark.parametrize(
    ("alerts", "firing"),
    [
        (None, False),
        ([], False),
        ([{"fingerprint": "f1"}, {"odd": 1}], True),
        ([{"fingerprint": "f2"}, {"odd": 1}], None),
    ],
)
async def test_an_alertmanager_is_believed_as_far_as_it_could_be_read(alerts: Any, *, firing: bool | None) -> None:
    answers = {"/api/v2/alerts": alerts, "/api/v2/status": {"uptime": "2026-03-01T00:00:00Z"}, "/api/v2/silences": None}
    async with reached(Answers(answers)) as http:
        monitor = Alertmanager("alertmanager", http, "alertmanager")
        assert (await monitor.firing(INCIDENT)).fires is firing
        assert await monitor.silences() == []


async def test_the_other_silences_hold_when_one_is_malformed() -> None:
    right = {"id": "5a", "status": {"state": "active"}, "startsAt": at(0), "endsAt": at(60), "matchers": []}
    async with reached(Answers({"/api/v2/silences": [{"id": "odd"}, right]})) as http:
        assert len(await Alertmanager("alertmanager", http, "alertmanager").silences()) == 1


# Kubernetes

ROOT = "/api/v1/namespaces/live"
WORKLOADS = {"api": Workload(namespace="live", selector="app=api")}


def pod(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": None, "containerStatuses": None},
    }


def log_of(text: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=f"2026-03-14T09:05:00.000000000Z {text}\n")

    return answer


def cluster(*pods: Any, **more: Any) -> dict[str, Any]:
    warning = {
        "type": "Warning",
        "reason": "Evicted",
        "message": "node is down",
        "lastTimestamp": at(6),
        "involvedObject": {"kind": "Pod", "name": "a"},
    }
    return {
        f"{ROOT}/pods": {"items": list(pods)},
        f"{ROOT}/events": {"metadata": {}, "items": [warning]},
        f"{ROOT}/pods/a/log": log_of("of a"),
        f"{ROOT}/pods/b/log": log_of("of b"),
    } | {f"{ROOT}/{path}": answer for path, answer in more.items()}


@every_case(
    ("answers", "texts", "unread"),
    [
        (
            cluster(pod("a"), pod("b"), **{"pods/b/log": (404, {"message": 'pods "b" not found'})}),
            ["of a", "Kubernetes Evicted: node is down"],
            ["k8s: log of b/main: failed", 'HTTP status 404: pods "b" not found'],
        ),
        (
            cluster(pod("a"), pod("b"), **{"pods/b/log": (400, {"message": "the container is waiting to start"})}),
            ["of a", "Kubernetes Evicted: node is down"],
            ["k8s: log of b/main", "HTTP status 400: the container is waiting to start"],
        ),
        (
            cluster(pod("a"), pod("b"), **{"pods/b/log": (500, {"message": "dial tcp 10.0.0.9:10250: no route"})}),
            ["of a", "Kubernetes Evicted: node is down"],
            ["k8s: log of b/main", "HTTP status 500: dial tcp 10.0.0.9:10250: no route"],
        ),
        (
            cluster(pod("a"), pod("b"), events=(403, {"message": "events is forbidden"})),
            ["of a", "of b"],
            ["k8s: events: access refused", "HTTP status 403: events is forbidden"],
        ),
        (
            cluster(pod("a"), pod("b"), **{"pods/a/log": (404, REASON), "pods/b/log": (404, REASON)}),
            ["Kubernetes Evicted: node is down"],
            ["k8s: log of a/main", "k8s: log of b/main"],
        ),
        (
            cluster(pod("a"), {"spec": 1}),
            ["of a", "Kubernetes Evicted: node is down"],
            ["k8s: pods: left out (1 of 2 in an unexpected format"],
        ),
        (cluster(pod("a"), events={"items": None}), ["of a"], []),
    ],
)
async def test_what_the_cluster_answers_is_kept(answers: dict[str, Any], texts: list[str], unread: list[str]) -> None:
    async with reached(Answers(answers)) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 100)
    assert [line.text for line in found] == texts
    assert all(any(part in text for text in gaps(found)) for part in unread)
    assert bool(gaps(found)) is bool(unread)


@pytest.mark.parametrize("status", [410, 500])
async def test_the_first_pods_are_kept_when_the_list_cannot_be_read_to_its_end(status: int) -> None:
    async def pages(request: web.Request) -> web.Response:
        if "continue" in request.query:
            return web.json_response({"message": "the continue token is too old"}, status=status)
        return web.json_response({"metadata": {"continue": "2"}, "items": [pod("a")]})

    async with reached(Answers(cluster(pods=pages))) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 100)
    assert [line.text for line in found] == ["of a", "Kubernetes Evicted: node is down"]
    (unread,) = gaps(found)
    assert unread.startswith("k8s: pods: failed")
    assert "the continue token is too old" in unread


async def test_a_list_that_is_longer_than_what_is_read_of_it_is_named() -> None:
    async def pages(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {"continue": "more"}, "items": []})

    async with reached(Answers(cluster(pod("a"), events=pages))) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 100)
    assert gaps(found) == ["k8s: events: left out (all after the first 0)"]


async def test_the_pods_whose_logs_are_not_read_are_counted_and_named() -> None:
    many = [pod(f"p{number}") for number in range(13)]
    answers = cluster(*many) | {f"{ROOT}/pods/p{number}/log": log_of("x") for number in range(13)}
    async with reached(Answers(answers)) as http:
        found = await Kubernetes("k8s", http, WORKLOADS).lines("api", HOUR, 100)
    assert gaps(found) == ["k8s: logs of pods: left out (3 of 13: p10 (Running), p11 (Running), p12 (Running))"]


# Slow parts


async def quick() -> list[int]:
    return [1]


async def slow() -> list[int]:
    await asyncio.sleep(60)
    return [2]


async def nested() -> list[int]:
    return await kept("", [("quick", quick()), ("slow", slow())])


@pytest.mark.parametrize(
    ("part", "items", "unread"),
    [(slow, [1], "outer: late"), (nested, [1, 1], "outer: slow")],
)
async def test_the_parts_that_are_read_by_the_deadline_are_kept(
    part: Callable[[], Awaitable[list[int]]], items: list[int], unread: str
) -> None:
    loop = asyncio.get_running_loop()
    ANSWER_BY.set(loop.time() + 3 * GRACE)
    began = loop.time()
    found = await kept("outer", [("early", quick()), ("late", part())])
    assert loop.time() - began < 3 * GRACE
    assert found == items
    assert [(gap.tool, gap.reason) for gap in found.gaps] == [(unread, GapReason.TIMED_OUT)]


async def test_without_a_deadline_every_part_is_waited_for() -> None:
    async def later() -> list[int]:
        await asyncio.sleep(0.01)
        return Partial([3], [Gap("", GapReason.LEFT_OUT, "one")])

    found = await kept("outer", [("early", quick()), ("late", later())])
    assert found == [1, 3]
    assert [gap.text for gap in found.gaps] == ["outer: late: left out (one)"]


async def test_an_error_of_the_product_itself_is_not_taken_for_a_gap() -> None:
    async def wrong() -> list[int]:
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        await kept("outer", [("early", quick()), ("wrong", wrong())])
