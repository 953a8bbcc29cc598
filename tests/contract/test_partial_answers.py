"""A status of 200 is no answer yet: what an answer says that it lacks, and what is none, is a gap with its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

import adapters.http
from adapters.http import HttpAnswer
from adapters.readers.definition import Never, parsed, shipped
from adapters.readers.values import JsonItem
from adapters.tools.kubernetes import Kubernetes, Workload
from core.model.errors import ConfigurationError, ToolUnavailable
from core.ports import LogLine
from tests.cases import every_case
from tests.contract.reader_answers import EVERY, answering, as_recorded, gaps, outcome, read_part
from tests.fakes.build_worlds import World, azure, github, gitlab, jenkins
from tests.fakes.recorded_reader import HOUR, START, Server, reading, recording
from tests.fakes.tool_servers import FakeKubernetes, reached

FRAMES = {"schema": {"meta": {"notices": [{"severity": "warning", "text": "results were truncated"}]}}}
FRAMES["data"] = {"values": [[], [], []]}  # pyright: ignore[reportArgumentType]
NRQL = {"data": {"actor": {"account": {"nrql": {"results": [], "metadata": {"messages": ["the limit was reached"]}}}}}}
ERRORS = {"data": {"actor": {"account": None}}, "errors": [{"message": "query timed out"}]}
METRICS: dict[str, Any] = {"status": "success", "data": {"resultType": "matrix", "result": []}}
REMOTE = {"reason": {"type": "connect_transport_exception", "reason": "the cluster north cannot be reached"}}


def searched(**more: Any) -> dict[str, Any]:
    return {"timed_out": False, "_shards": {"total": 3, "failed": 0}, "hits": {"hits": []}, **more}


def clusters(**more: Any) -> dict[str, Any]:
    return searched(_clusters={"total": 2, "successful": 1, "skipped": 0, **more})


SEARCHED: list[tuple[dict[str, Any], str]] = [
    (searched(timed_out=True), "timed_out"),
    (searched(_shards={"total": 3, "failed": 2}), "_shards.failed: 2"),
    (searched(_shards={"failed": 1, "failures": [{"reason": {"reason": "no such node"}}]}), "no such node"),
    (clusters(skipped=1), "_clusters.skipped: 1"),
    ({"error": {"reason": "the circuit breaker tripped"}, "status": 429}, "the circuit breaker tripped"),
]
PARTIAL: dict[tuple[str, str], list[tuple[Any, str]]] = {
    ("azure_monitor_logs", "logs"): [
        (
            {"tables": [{"rows": []}], "error": {"message": "partial", "details": [{"message": "a shard is down"}]}},
            "a shard is down",
        ),
    ],
    ("cloudwatch_metrics", "metrics"): [
        ({"MetricDataResults": [], "Messages": [{"Code": "X", "Value": "too many metrics"}]}, "too many metrics"),
        (
            {"MetricDataResults": [{"Label": "CPU", "Timestamps": [], "Values": [], "Messages": [{"Value": "late"}]}]},
            "late",
        ),
        *(
            ({"MetricDataResults": [{"Label": "CPU", "Timestamps": [], "Values": [], "StatusCode": code}]}, code)
            for code in ("InternalError", "Forbidden", "PartialData")
        ),
    ],
    ("datadog", "logs"): [
        ({"data": [], "meta": {"status": "timeout"}}, "timeout"),
        ({"data": [], "meta": {"status": "done", "warnings": [{"title": "an index is missing"}]}}, "index is missing"),
    ],
    ("datadog", "changes"): [
        ({"data": [], "meta": {"status": "timeout"}}, "timeout"),
        ({"data": [], "meta": {"status": "done", "warnings": [{"title": "an index is missing"}]}}, "index is missing"),
    ],
    ("datadog", "metrics"): [
        ({"status": "error", "series": [], "error": "the query is too long"}, "the query is too long"),
        ({"status": "error", "series": []}, "error"),
    ],
    ("dynatrace", "logs"): [
        *(({"state": state}, state) for state in ("RUNNING", "NOT_STARTED", "FAILED", "CANCELLED", "RESULT_GONE")),
        (
            {
                "state": "SUCCEEDED",
                "result": {
                    "records": [],
                    "metadata": {"grail": {"notifications": [{"severity": "WARN", "message": "scan limit"}]}},
                },
            },
            "scan limit",
        ),
    ],
    ("dynatrace", "metrics"): [
        ({"result": [], "warnings": ["limited to 100 series"]}, "limited to 100 series"),
        ({"result": [{"metricId": "a", "data": [], "warnings": ["no unit"]}]}, "no unit"),
    ],
    ("elasticsearch", "logs"): [
        *SEARCHED,
        (clusters(failed=1), "_clusters.failed: 1"),
        (clusters(partial=1), "_clusters.partial: 1"),
        (clusters(skipped=1, details={"north": {"failures": [REMOTE]}}), "the cluster north cannot be reached"),
    ],
    ("opensearch", "logs"): SEARCHED,
    ("grafana", "metrics"): [
        ({"results": {"A": {"frames": [], "error": "the data source timed out"}}}, "timed out"),
        ({"results": {"A": {"frames": [FRAMES]}}}, "results were truncated"),
        ({"message": "no such data source", "results": {"A": {"frames": []}}}, "no such data source"),
    ],
    ("grafana_logs", "logs"): [
        ({"results": {"A": {"frames": [], "error": "the data source timed out"}}}, "timed out"),
        ({"results": {"A": {"frames": [FRAMES]}}}, "results were truncated"),
        ({"message": "no such data source", "results": {"A": {"frames": []}}}, "no such data source"),
    ],
    ("jaeger", "calls"): [({"data": [], "errors": [{"code": 500, "msg": "the storage is down"}]}, "storage is down")],
    ("loki", "logs"): [
        (
            {"status": "success", "warnings": ["a querier left"], "data": {"resultType": "streams", "result": []}},
            "a querier left",
        ),
        ({"status": "error", "error": "too many streams", "data": {"result": []}}, "too many streams"),
    ],
    ("new_relic", "logs"): [(ERRORS, "query timed out"), (NRQL, "the limit was reached")],
    ("new_relic", "metrics"): [(ERRORS, "query timed out"), (NRQL, "the limit was reached")],
    ("prometheus", "metrics"): [
        ({**METRICS, "warnings": ["a store is gone"]}, "a store is gone"),
        ({**METRICS, "infos": ["PromQL info: no counter"]}, "no counter"),
        ({**METRICS, "status": "error", "error": "the query was cancelled"}, "the query was cancelled"),
    ],
    ("victoriametrics", "metrics"): [
        ({**METRICS, "isPartial": True}, "isPartial"),
        ({**METRICS, "warnings": ["a store is gone"]}, "a store is gone"),
        ({**METRICS, "status": "error", "error": "the query was cancelled"}, "the query was cancelled"),
    ],
    ("splunk", "logs"): [
        ([{"messages": [{"type": kind, "text": "a search peer is down"}]}], "a search peer is down")
        for kind in ("WARN", "ERROR", "FATAL")
    ],
    ("tempo", "spans"): [
        ({"traces": [], "status": "PARTIAL"}, "PARTIAL"),
        ({"traces": [], "message": "the trace exceeds the maximum size"}, "exceeds the maximum size"),
    ],
}


@every_case(("kind", "part"), PARTIAL)
async def test_partial_answer_is_a_gap_with_what_it_says(kind: str, part: str) -> None:
    lines = part == "logs" and kind == "splunk"
    for answer, text in PARTIAL[kind, part]:
        async with reading(recording(kind), Server([{"lines" if lines else "answer": answer}])) as reader:
            read, error = await outcome(reader, part)
        assert any(text in gap for gap in (error, *gaps(read))), (answer, error, gaps(read))


def test_every_definition_states_how_a_partial_answer_looks_and_every_statement_is_tried() -> None:
    for kind, part in EVERY:
        definition = shipped()[kind]
        said: Any = getattr(definition, part, None) or definition.people[part]
        readings = [said.runs, said.jobs, said.log, said.notes or said.log] if part == "builds" else [said]
        if all(isinstance(each.partial, Never) for each in readings):
            assert all(each.partial.never for each in readings)
            continue
        for path in said.partial:
            assert any(path.all(JsonItem(answer)) for answer, _ in PARTIAL[kind, part]), f"{kind} {part}: {path.text}"


def test_definition_of_a_user_without_such_a_statement_is_refused() -> None:
    text = "{title: A, reference: [], logs: {request: {path: a}, items: $, at: $.at, text: $.text}}"
    with pytest.raises(ConfigurationError, match=r"logs\.partial: Field required"):
        parsed(text, "a.yaml")


@pytest.mark.parametrize("text", ["[" * 50_000, "[1," * 50_000 + "]" * 50_000, "{a: " * 40_000])
def test_definition_that_nests_without_end_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"a\.yaml is not valid YAML"):
        parsed(text, "a.yaml")


PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in &middot; Marigold</title></head><body>Please sign in</body></html>"


@every_case(("kind", "part"), EVERY)
async def test_sign_in_page_is_no_answer_and_named_with_its_title(kind: str, part: str) -> None:
    async def signing_in(_: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    async with answering(kind, signing_in) as (reader, _):
        with pytest.raises(ToolUnavailable, match="a web page, “Sign in · Marigold”"):
            await read_part(reader, part)


@pytest.mark.parametrize(
    "refusal", ["failed to open the log of containerd://5c1d", PAGE, "{}", "[error] no such pod\nagain"]
)
async def test_text_that_a_node_gives_for_a_log_is_a_gap_with_that_text(refusal: str) -> None:
    fake = FakeKubernetes([LogLine("api", START, "ERROR", "no stock")])
    cluster_of = lambda http: Kubernetes("cluster", http, {"api": Workload(namespace="live", selector="app=api")})  # noqa: E731
    async with reached(fake) as http:
        fake.logs = {("api-0", "main", ""): refusal}
        read = await cluster_of(http).lines("api", HOUR, 100)
        assert list(read) == []
        assert any(refusal.split("\n", 1)[0][:20] in gap or "Sign in" in gap for gap in gaps(read)), gaps(read)
        fake.logs = {("api-0", "main", ""): f"2026-03-14T09:01:00Z all is well\n{refusal}"}
        read = await cluster_of(http).lines("api", HOUR, 100)
        assert [line.text for line in read] == ["all is well"]
        assert gaps(read)


@pytest.mark.parametrize("world", [github, gitlab, jenkins, azure])
async def test_page_in_place_of_the_log_of_a_build_is_refused(
    world: Callable[[], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def page(*_: Any, **__: Any) -> HttpAnswer:
        return HttpAnswer(200, {}, PAGE.encode())

    built = world()
    async with reached(built.fake, base=built.base) as http:
        builds = built.builds(http)
        whole = adapters.http.exchange
        is_log = re.compile("/logs|/trace$|/consoleText$")

        async def exchange(*given: Any, **options: Any) -> HttpAnswer:
            return await (page if is_log.search(given[2].path) else whole)(*given, **options)

        monkeypatch.setattr(adapters.http, "exchange", exchange)
        with pytest.raises(ToolUnavailable, match="a web page, “Sign in"):
            await builds.last_failure("api", HOUR.end)


TEXT = "cannot reach the ledger"
OTHER_FIELDS: dict[str, list[dict[str, Any]]] = {
    "elasticsearch": [
        {"log": TEXT},
        {"event": {"original": TEXT}},
        {"event.original": TEXT, "message": ""},
        {"body": {"text": TEXT}},
        {"body": TEXT, "log": {"level": "error"}},
        {"msg": TEXT},
        {"jsonPayload": {"message": TEXT}},
    ],
    "opensearch": [{"log": TEXT}, {"body.text": TEXT}],
    "datadog": [{"message": "", "attributes": {"msg": TEXT}}, {"attributes": {"error": {"message": TEXT}}}],
    "victorialogs": [{"message": TEXT}, {"log": TEXT}, {"body.text": TEXT}],
}


def stored(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with one record of these fields."""
    at = "2026-03-14T09:01:00Z"
    match kind:
        case "elasticsearch" | "opensearch":
            return {"answer": searched(hits={"hits": [{"_source": {"@timestamp": at, **fields}}]})}
        case "datadog":
            return {"answer": {"data": [{"attributes": {"timestamp": at, **fields}}], "meta": {"status": "done"}}}
        case _:
            return {"lines": [{"_time": at, **fields}]}


@pytest.mark.parametrize("kind", OTHER_FIELDS)
async def test_text_is_read_wherever_the_vendor_keeps_it_and_a_record_without_one_is_named(kind: str) -> None:
    for fields in OTHER_FIELDS[kind]:
        async with reading(recording(kind), Server([stored(kind, fields)])) as reader:
            read = await reader.lines("till", HOUR, 1)
        assert as_recorded("logs", read) == [f"09:01:00 {read[0].level} {TEXT}"], fields
    async with reading(recording(kind), Server([stored(kind, {"note": {"de": TEXT}})])) as reader:
        _, error = await outcome(reader, "logs")
    assert "has no text" in error
    assert "note" in error


@every_case("kind", [*OTHER_FIELDS, "new_relic"])
async def test_setting_names_another_field_for_the_text(kind: str) -> None:
    recorded = recording(kind)
    fields = {"note": {"de": TEXT}, "message": "another"} | ({"note.de": TEXT} if kind == "new_relic" else {})
    answer = stored(kind, fields)
    if kind == "new_relic":
        nrql = {"results": [{"timestamp": 1773479000000, **fields}]}
        answer = {"answer": {"data": {"actor": {"account": {"nrql": nrql}}}}}
    recorded.tool["text_field"] = "note.de"  # pyright: ignore[reportIndexIssue]
    try:
        async with reading(recorded, Server([answer])) as reader:
            read = await reader.lines("till", HOUR, 1)
    finally:
        del recorded.tool["text_field"]  # pyright: ignore[reportIndexIssue]
    assert [line.text for line in read] == [TEXT], json.dumps(answer)


async def test_blank_line_of_a_plain_log_is_a_record_and_no_gap() -> None:
    streams = [{"stream": {"app": "till"}, "values": [["1773480600000000000", ""], ["1773480700000000000", "x"]]}]
    answer = {"status": "success", "data": {"resultType": "streams", "result": streams}}
    async with reading(recording("loki"), Server([{"answer": answer}])) as reader:
        read = await reader.lines("till", HOUR, 100)
    assert ([line.text for line in read], gaps(read)) == (["", "x"], [])
