"""The contract of every definition of a reader, over recorded answers and servers that refuse, lie, dawdle and never end."""

from __future__ import annotations

import asyncio
import json
import math
import re
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from adapters.readers.definition import shipped
from adapters.readers.reader import Reader
from adapters.readers.values import moment
from core.model.errors import NotThere, ToolRefused, ToolUnavailable
from core.ports import CheckedTool
from tests.cases import every_case
from tests.contract.reader_answers import (
    EVERY,
    answering,
    as_recorded,
    builds_of,
    gaps,
    outcome,
    read_part,
    schedules,
)
from tests.fakes.recorded_reader import FOLDER, HOUR, Server, reading, recording

OF_A_SERVICE = [(kind, part) for kind, part in EVERY if part in ("logs", "metrics")]
HOSTILE = [
    'till"} or {app="secret',
    "till' OR '1'='1",
    "till\\",
    'till\\" | delete',
    "till | union secrets",
    "../../secret",
    "..",
    "till/../secret",
    "till?x=1&service=secret#y",
    "till%2Fsecret",
    "*",
    "till) OR (service:secret",
    '{"match_all": {}}',
    "${start:ns}${index}",
    "till`|~`",
    "till\n| delete",
    "till\u2028x",
    "t" * 5_000,
]
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'")
WORD = re.compile(r"(?<=\{service:)[\w./-]+(?=\})")  # Datadog's queries of metrics have no strings


def test_every_definition_has_a_recording_and_every_recording_a_definition() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(shipped())


@every_case(("kind", "part"), EVERY)
async def test_the_window_is_asked_for_and_what_is_in_it_understood_page_by_page(kind: str, part: str) -> None:
    recorded = recording(kind)
    exchanges = recorded.exchanges[part]
    server = Server(exchanges)
    async with reading(recorded, server) as reader:
        read = await read_part(reader, part)
    assert server.asked == [each["asked"] for each in exchanges]
    assert as_recorded(part, read) == recorded.understood[part]
    assert gaps(read) == []
    for headers in server.headers:
        assert {name: headers.get(name) for name in recorded.headers} == dict(recorded.headers)


@every_case(("kind", "part"), EVERY)
async def test_an_empty_answer_is_nothing_and_no_gap(kind: str, part: str) -> None:
    recorded = recording(kind)
    last = recorded.exchanges[part][-1]
    empty = {"lines": last["empty"]} if "lines" in last else {"answer": last["empty"]}
    async with reading(recorded, Server([*recorded.exchanges[part][:-1], {**last, **empty}])) as reader:
        read = await read_part(reader, part)
    if len(recorded.exchanges[part]) == 1:
        assert len(read) == 0
    assert gaps(read) == []


PARTIAL = [(kind, part) for kind, part in EVERY if any("partial" in each for each in recording(kind).exchanges[part])]


@every_case(("kind", "part"), PARTIAL)
async def test_what_an_answer_says_it_lacks_is_named(kind: str, part: str) -> None:
    recorded = recording(kind)
    (partial,) = [each["partial"] for each in recorded.exchanges[part] if "partial" in each]
    async with reading(recorded, Server([partial])) as reader:
        read, error = await outcome(reader, part)
    assert any(partial["gap"] in text for text in [error, *gaps(read)])
    assert all(text.startswith(f"{kind}: ") for text in gaps(read))


@every_case(("kind", "part"), EVERY)
async def test_a_refusal_is_named_with_its_reason_and_without_the_secrets(kind: str, part: str) -> None:
    secrets = [f"secret-{name}" for name in recording(kind).definition.secrets]

    async def refusing(_: web.Request) -> web.Response:
        reason = {"message": f"too many drawers for {' '.join(secrets)}"}
        return web.json_response(reason, status=status, headers={"Retry-After": "17"})

    async with answering(kind, refusing) as (reader, _):
        for status in (400, 401, 403, 404, 422, 429, 500, 503):
            with pytest.raises(ToolUnavailable, match=f"{status}.*too many drawers") as caught:
                await read_part(reader, part)
            assert not any(secret in str(caught.value) for secret in secrets), status
            assert isinstance(caught.value, ToolRefused) == (status == 401), status
            assert isinstance(caught.value, NotThere) == (status == 404), status
            assert caught.value.retry_after == (17 if status in (403, 429, 500, 503) else None), status


@every_case(("kind", "part"), EVERY)
async def test_a_second_page_that_is_refused_leaves_the_first(kind: str, part: str) -> None:
    recorded = recording(kind)
    exchanges = recorded.exchanges[part]
    if len(exchanges) < 2:
        return
    server = Server(exchanges)
    whole = server.handle

    async def refusing(request: web.Request) -> web.StreamResponse:
        if len(server.asked) == len(exchanges) - 1:
            server.asked.append({})
            return web.json_response({"message": "too many drawers"}, status=429)
        return await whole(request)

    server.handle = refusing
    async with reading(recorded, server) as reader:
        read, error = await outcome(reader, part)
    if error:
        is_whole = part == "builds" or recorded.definition.readings[0].then is not None
        assert is_whole or recorded.definition.people, "the rest would be told"
    else:
        rest = recorded.understood.get(f"{part} in part", recorded.understood[part])
        assert all(any(whole.startswith(each) for whole in rest) for each in as_recorded(part, read))
        assert len(read) > 0
    assert [text for text in [error, *gaps(read)] if "too many drawers" in text]


@every_case(("kind", "part"), EVERY)
async def test_a_server_that_dawdles_is_not_waited_for(kind: str, part: str) -> None:
    silence = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await silence.wait()
        return web.Response()

    async with answering(kind, silent, seconds=0.05) as (reader, _):
        with pytest.raises(ToolUnavailable, match="cannot be reached"):
            await read_part(reader, part)
        silence.set()


@every_case("kind", sorted({kind for kind, part in EVERY if part == "logs"}))
async def test_a_record_whose_time_cannot_be_read_is_quoted_without_one(kind: str) -> None:
    recorded = recording(kind)
    exchange, *others = recorded.exchanges["logs"]
    key = "lines" if "lines" in exchange else "answer"
    body = exchange[key]
    for place in places(body):
        if is_time(reduce(getitem, place, body)):
            body = replaced(body, place, f"2026-03-14 14:42 {kind} Time")
    async with reading(recorded, Server([{**exchange, key: body}, *others])) as reader:
        read, error = await outcome(reader, "logs")
    assert not error
    (gap,) = [text for text in gaps(read) if " cannot be read: " in text]
    assert f"(2026-03-14 14:42 {kind} Time)" in gap
    quoted = [text for text in recorded.understood["logs"] if text.split(" ", 2)[2] in gap]
    assert quoted
    assert not set(quoted) & set(as_recorded("logs", read))


def is_time(value: Any) -> bool:
    try:
        return not isinstance(value, float) and HOUR.start <= moment(value) < HOUR.end
    except ValueError:
        return False


async def test_a_deployment_of_several_sources_tells_each_with_its_revision() -> None:
    recorded = recording("argo_cd")
    async with reading(recorded, Server(recorded.exchanges["changes"])) as reader:
        one, several = await reader.changes(HOUR)
    assert one.detail == "https://git.example/till deploy"
    assert several.detail.splitlines() == [
        "https://git.example/till deploy main at 5d1f0c9e77aa",
        "https://charts.example till 6.1.x at 6.1.4",
        "https://git.example/values v7 at 77aa03d5",
    ]
    assert several.revision == several.commits[0]


LIES = ["", "<html>", "[", "7", '"x"', "[[[]]]", "{}", '{"data": 7}', "[" * 50_000, '{"data": {"result": [7]}}', "\x00"]


@every_case(("kind", "part"), EVERY)
async def test_an_answer_of_another_form_is_no_answer(kind: str, part: str) -> None:
    async def lying(_: web.Request) -> web.Response:
        return web.Response(text=lie, content_type="application/json")

    first = next(iter(recording(kind).definition.readings), None)
    is_lenient = kind == "jenkins" or (first is not None and (first.format == "lines" or first.then is not None))
    # lines, and a search that omits an empty list
    async with answering(kind, lying) as (reader, _):
        for lie in LIES:
            read, error = await outcome(reader, part)
            assert len(read) == 0
            assert "answered" in error or (is_lenient and (not lie or lie.startswith(("{", "[["))))


ODD = [None, 7, "x", [[]], {"x": 1}, True, 1e300, "9" * 400]


@every_case(("kind", "part"), EVERY)
async def test_whatever_stands_in_a_place_of_an_answer_the_rest_is_read(kind: str, part: str) -> None:
    """Each value of the recorded answer in turn is replaced; nothing but ToolUnavailable may be raised."""
    recorded = recording(kind)
    exchange = recorded.exchanges[part][-1]
    before = recorded.exchanges[part][:-1]
    body = exchange.get("lines", exchange.get("answer"))
    server = Server()
    async with reading(recorded, server) as reader:
        for number, place in enumerate(places(body)):
            odd = ODD[number % len(ODD)]
            damaged = {"lines" if "lines" in exchange else "answer": replaced(body, place, odd)}
            server._answers, server.asked = [*before, damaged, *[damaged] * 3], []
            _, error = await outcome(reader, part)
            assert not error or "answered" in error or "has more than" in error


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for name, each in members for place in places(each, (*at, name)))][:60]


def replaced(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    if not place:
        return [odd] if isinstance(value, list) else odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(value[place[0]], place[1:], odd) if place[1:] else odd
    return copy


@every_case(("kind", "part"), EVERY)
async def test_an_answer_without_an_end_is_cut_off(kind: str, part: str) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for _ in range(65_536):  # four gigabytes
                await response.write(b"[" + b" " * 65_535)
                sent += 65_536
        except ConnectionError:
            pass
        return response

    async with answering(kind, endless, max_body=200_000) as (reader, _):
        with pytest.raises(ToolUnavailable, match="more than 200000 bytes"):
            await read_part(reader, part)
    assert sent < 32 * 2**20


@every_case(("kind", "part"), EVERY)
async def test_a_redirect_to_an_inner_address_is_not_followed(kind: str, part: str) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        raise web.HTTPFound(there)

    async with answering(kind, elsewhere) as (reader, server):
        for there in ("http://169.254.169.254/latest/meta-data", "http://localhost:1/", "file:///etc/passwd"):
            server.asked.clear()
            with pytest.raises(ToolUnavailable, match="redirects to"):
                await read_part(reader, part)
            assert len(server.asked) == 1, there


@every_case(("kind", "part"), OF_A_SERVICE)
async def test_a_name_stays_where_it_stands_whether_an_alert_or_plumbline_yaml_gives_it(kind: str, part: str) -> None:
    """A request differs from that for `till` in its strings alone: no part of a query, no path, no member is added."""
    recorded = recording(kind)
    one = next(each for each in recorded.exchanges[part] if "empty" in each)
    server = Server([{"lines": one["empty"]} if "lines" in one else {"answer": one["empty"]}])
    is_labels = recorded.definition.services == "labels"

    async def asked(service: str, name: Any) -> list[Any]:
        server.asked.clear()
        assert len(await read_part(replace(reader, services={"till": name}), part, service)) == 0
        return [skeleton(each, service if service != "till" else name) for each in server.asked[:1]]

    async with reading(recorded, server) as reader:
        (plain,) = await asked("till", {"app": "till"} if is_labels else "till")
        for hostile in HOSTILE:
            assert await asked(hostile, {"app": "x"} if is_labels else "x") in ([], [plain])
            assert await asked("till", {"app": hostile} if is_labels else hostile) in ([], [plain])


def skeleton(asked: Any, service: str) -> Any:
    """A request without its strings: those of query languages, and members that are nothing but the name."""
    match asked:
        case dict():
            return {key: skeleton(each, service) for key, each in asked.items()}
        case list():
            return [skeleton(each, service) for each in asked]
        case str() if asked == service:
            return "…"
        case str() if asked.startswith("/"):
            assert ".." not in asked.split("/")
            return asked.count("/")
        case str():
            return WORD.sub("…", LITERAL.sub("…", asked))
        case _:
            return asked


@every_case(("kind", "part"), EVERY)
async def test_the_check_says_whether_the_system_lets_us_in(kind: str, part: str) -> None:
    recorded = recording(kind)
    async with reading(recorded, Server(recorded.exchanges[part][-1:])) as reader:
        if (
            part != "builds"
            and len(recorded.exchanges) == 1
            and all(each.then is None for each in recorded.definition.readings)
        ):
            await checked_by(reader, part).check()

    async def refusing(_: web.Request) -> web.Response:
        return web.json_response({"message": "no"}, status=403)

    async with answering(kind, refusing) as (reader, _):
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await checked_by(reader, part).check()


def checked_by(reader: Reader, part: str) -> CheckedTool:
    return builds_of(reader) if part == "builds" else schedules(reader, part) if reader.definition.people else reader


@every_case("kind", [kind for kind, part in EVERY if part == "builds"])
async def test_what_the_address_of_a_page_names_is_read_and_nothing_of_another_project(kind: str) -> None:
    async with reading(recording(kind), Server()) as reader:
        builds, server = builds_of(reader), reader.pages.http.url.rstrip("/")
        (project,) = recording(kind).services.values()
        for page, named in recording(kind).pages.items():
            assert builds.link(URL(f"{server}/{page}", encoded=True), project) == named, page
            assert not builds.link(URL(f"https://evil.invalid/{page}", encoded=True), project)


@pytest.mark.parametrize("part", ["logs", "changes"])
async def test_pages_without_an_end_are_not_read_for_ever_and_the_rest_is_named(part: str) -> None:
    number = 0

    async def endless(_: web.Request) -> web.Response:
        nonlocal number
        number += 1
        said = {"timestamp": HOUR.start.isoformat(), "message": f"sale {number}", "attributes": {"title": "Sale"}}
        data = [{"id": str(number), "attributes": said}]
        return web.json_response({"data": data, "meta": {"page": {"after": str(number)}}})

    async with answering("datadog", endless) as (reader, server):
        read = await read_part(reader, part)
    assert len(read) == len(server.asked) == 8
    assert [text.partition(": ")[2].partition(": ")[2] for text in gaps(read)] == [
        "left out (what is on further pages)"
    ]


async def test_enough_records_are_no_gap_though_there_are_more() -> None:
    exchange = recording("datadog").exchanges["logs"][0]
    async with reading(recording("datadog"), Server([exchange])) as reader:
        read = await reader.lines("till", HOUR, 1)
    assert (len(read), gaps(read)) == (1, [])


def test_a_recording_can_be_told_apart() -> None:
    """The skeleton of a request that was broken out of differs, so that the tests above can fail."""
    assert skeleton({"query": '{app="a"} or {app="b"}'}, "x") != skeleton({"query": '{app="a"}'}, "x")
    assert skeleton({"path": "/a/b/c"}, "x") != skeleton({"path": "/a/b"}, "x")
    assert math.isnan(json.loads("NaN"))
