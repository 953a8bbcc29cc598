"""Reading JSON over HTTP: what a server may answer with, and what is never asked."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http import Http, Refused, Retries, Token, TryAgain, source_server
from core.model.errors import SourceUnavailable
from core.ports import ANSWER_BY


class Server:
    """Answers everything with `answer`, and remembers what it was asked with."""

    def __init__(self) -> None:
        self.answer: Callable[[], web.Response] = web.Response
        self.asked: list[web.BaseRequest] = []
        self.pauses: list[float] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        return self.answer()

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, Http]]:
    fake, app = Server(), web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    async with TestServer(app) as running, aiohttp.ClientSession() as session:
        retries = Retries(sleep=fake.pause)
        yield fake, source_server("The wiki", str(running.make_url("/base")), session, Token("Bearer t0ken"), retries)


async def test_an_answer_is_an_object_and_addresses_are_relative_to_the_base(server: tuple[Server, Http]) -> None:
    fake, wiki = server
    fake.answer = lambda: web.json_response({"a": 1})
    assert await wiki.get("search", {"cql": 'space in ("A")', "$top": "5"}) == {"a": 1}
    request = fake.asked[0]
    assert (request.path, dict(request.query)) == ("/base/search", {"cql": 'space in ("A")', "$top": "5"})
    assert request.headers["Authorization"] == "Bearer t0ken"


async def test_an_address_that_the_server_gave_is_asked_as_it_is(server: tuple[Server, Http]) -> None:
    fake, wiki = server
    fake.answer = lambda: web.json_response({})
    await wiki.get("/other/delta?$skiptoken=%5bx%2b&a=b%20c")
    assert fake.asked[0].raw_path == "/other/delta?$skiptoken=%5bx%2b&a=b%20c"


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/x", "//evil.example/x", "http://localhost:1/x", "http://[/", "ftp://x/y"],
)
async def test_no_other_server_is_asked(server: tuple[Server, Http], address: str) -> None:
    fake, wiki = server
    with pytest.raises(SourceUnavailable):
        await wiki.get(address)
    assert fake.asked == []


async def test_a_redirection_is_not_followed(server: tuple[Server, Http]) -> None:
    fake, wiki = server
    fake.answer = lambda: web.Response(status=302, headers={"Location": "https://evil.example/"})
    with pytest.raises(Refused, match=r"redirects to evil\.example"):
        await wiki.get("x")
    assert len(fake.asked) == 1


@pytest.mark.parametrize("body", ["", "<html>", "[1]", "null", '"text"'])
async def test_an_answer_that_is_no_object_is_told(server: tuple[Server, Http], body: str) -> None:
    fake, wiki = server
    fake.answer = lambda: web.Response(text=body)
    with pytest.raises(SourceUnavailable, match="The wiki answered x in an unexpected format"):
        await wiki.get("x")


async def test_an_answer_without_end_is_not_read_to_its_end(server: tuple[Server, Http]) -> None:
    fake, wiki = server
    fake.answer = lambda: web.json_response({"long": "x" * 100})
    with pytest.raises(SourceUnavailable, match="more than 10 bytes"):
        await replace(wiki, max_body=10).get("x")
    assert fake.pauses == []


async def test_a_refusal_says_where_and_is_not_repeated(server: tuple[Server, Http]) -> None:
    fake, wiki = server
    fake.answer = lambda: web.Response(status=403)
    with pytest.raises(Refused, match="The wiki refuses the token for /base/x") as caught:
        await wiki.get("x")
    assert (caught.value.status, len(fake.asked)) == (403, 1)


FAR = datetime.now(UTC) + timedelta(days=10)
LIMITS: list[tuple[int, dict[str, str], object, float]] = [
    (403, {"Retry-After": "7"}, None, 7.0),
    (403, {"X-RateLimit-Remaining": "0"}, None, 1.0),
    (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{FAR.timestamp():.0f}"}, None, 864e3),  # GitHub
    (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": FAR.isoformat()}, None, 864e3),  # Atlassian
    (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9"}, None, 9.0),  # Datadog
    (429, {"X-RateLimit-Remaining": "8", "X-RateLimit-Reset": "9"}, None, 1.0),  # of another limit
    (403, {"x-ms-ratelimit-remaining-subscription-reads": "0"}, None, 1.0),
    (403, {}, {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}, 1.0),
    (403, {}, {"message": "API rate limit exceeded for user ID 4."}, 1.0),
    (403, {}, {"error": {"code": 403, "errors": [{"reason": "userRateLimitExceeded"}], "message": "No."}}, 1.0),
    (400, {}, {"__type": "com.amazonaws.logs#ThrottlingException", "message": "Rate exceeded"}, 1.0),
    (400, {}, "<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>", 1.0),
    (503, {}, {"error": {"code": "TooManyRequests", "message": "The request is being throttled."}}, 1.0),
    (400, {}, {"status": "RESOURCE_EXHAUSTED"}, 1.0),
]


@pytest.mark.parametrize(("status", "headers", "body", "pause"), LIMITS)
async def test_a_rate_limit_that_looks_like_a_refusal_is_waited_for(
    server: tuple[Server, Http], status: int, headers: dict[str, str], body: object, pause: float
) -> None:
    fake, wiki = server
    text = body if isinstance(body, str) else json.dumps(body)
    answers = [web.Response(status=status, headers=headers, text=text), web.json_response({})]
    fake.answer = lambda: answers.pop(0)
    await replace(wiki, retries=replace(wiki.retries, longest_pause=math.inf)).get("x")
    assert fake.pauses == [pytest.approx(pause, rel=0.01)]
    fake.answer = lambda: web.Response(status=status, headers=headers, text=text)
    with pytest.raises(TryAgain, match="The wiki has reached its rate limit"):
        await replace(wiki, retries=replace(wiki.retries, attempts=1)).get("x")
    assert len(fake.asked) == 3


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (403, {}, {"message": "Resource not accessible by personal access token"}),
        (403, {"X-RateLimit-Remaining": "12"}, {"message": "Forbidden"}),
        (400, {}, {"error": 'parse error in "sum(container_cpu_cfs_throttled_seconds_total{": rate limit'}),
        (400, {"X-RateLimit-Remaining": "0"}, {"message": "bad query"}),
        (404, {"X-RateLimit-Remaining": "0"}, {"message": "Not Found"}),
    ],
)
async def test_a_refusal_of_another_kind_is_no_rate_limit(
    server: tuple[Server, Http], status: int, headers: dict[str, str], body: object
) -> None:
    fake, wiki = server
    fake.answer = lambda: web.json_response(body, status=status, headers=headers)
    with pytest.raises(Refused):
        await wiki.get("x")
    assert fake.pauses == []


@pytest.mark.parametrize(("wish", "pauses"), [("2", [2.0]), ("4", [])])
async def test_a_reader_waits_for_a_rate_limit_once_if_its_deadline_allows_it(
    server: tuple[Server, Http], wish: str, pauses: list[float]
) -> None:
    fake, wiki = server
    fake.answer = lambda: web.Response(status=403, headers={"Retry-After": wish})
    ANSWER_BY.set(asyncio.get_running_loop().time() + 3)
    with pytest.raises(TryAgain, match="rate limit") as caught:
        await replace(wiki, retries=replace(wiki.retries, attempts=1)).get("x")
    assert (fake.pauses, caught.value.retry_after) == (pauses, float(wish))


@pytest.mark.parametrize("asked", ["soon", "-5", "nan", "inf", "Sun, 99 Feb 2026"])
async def test_a_time_that_makes_no_sense_is_as_good_as_none(server: tuple[Server, Http], asked: str) -> None:
    fake, wiki = server
    answers = [web.Response(status=429, headers={"Retry-After": asked}), web.json_response({})]
    fake.answer = lambda: answers.pop(0)
    await wiki.get("x")
    assert fake.pauses == [1.0]


async def test_a_server_that_does_not_answer_is_asked_again_and_then_told() -> None:
    pauses = list[float]()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with aiohttp.ClientSession() as session:
        wiki = source_server("The wiki", "http://127.0.0.1:1", session, Token(), Retries(sleep=pause))
        with pytest.raises(SourceUnavailable, match="The wiki cannot be reached"):
            await wiki.get("x")
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
