"""How every HTTP tool is bounded: in bytes, to its host, and one sentence for each thing that can go wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import TypeAdapter

from adapters.http import Http
from core.model.errors import ToolUnavailable
from tests.cases import every_case
from tests.fakes.tool_servers import FakeToolServer, reached


class Answers(FakeToolServer):
    """Says what a test wants to hear."""

    def __init__(self, answer: web.Response) -> None:
        super().__init__()
        self.answer_with = answer

    def routes(self) -> list[web.RouteDef]:
        async def handler(_: web.Request) -> web.Response:
            return self.answer_with

        return [web.get("/thing", handler)]


@every_case(
    ("status", "sentence"),
    [
        (401, "refuses the token"),
        (403, "refuses the token"),
        (404, "HTTP status 404"),
        (429, "HTTP status 429"),
        (500, "HTTP status 500"),
    ],
)
async def test_a_refusal_is_one_sentence(status: int, sentence: str) -> None:
    server = Answers(web.Response(text="fine"))
    server.refuse(status)
    async with reached(server) as http:
        with pytest.raises(ToolUnavailable, match=sentence):
            await http.text("thing")
        assert await http.text("thing") == "fine"


async def test_a_wrong_token_is_named() -> None:
    async with reached(Answers(web.Response(text="fine")), token="Bearer wrong") as http:
        with pytest.raises(ToolUnavailable, match="refuses the token"):
            await http.text("thing")


async def test_a_huge_answer_is_not_read_to_its_end() -> None:
    async with reached(Answers(web.Response(body=b"x" * 5_000))) as http:
        with pytest.raises(ToolUnavailable, match="more than 1000 bytes"):
            await replace(http, max_body=1_000).text("thing")


async def test_no_other_host_is_asked_and_none_that_is_allowed_gets_the_token() -> None:
    seen: list[str | None] = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response(text="the log")

    app = web.Application()
    app.router.add_get("/log", elsewhere)
    other = TestServer(app, host="127.0.0.1")
    await other.start_server()
    there = {"Location": f"http://localhost:{other.port}/log"}
    async with reached(Answers(web.Response(status=302, headers=there))) as http:
        with pytest.raises(ToolUnavailable, match=f"redirects to localhost:{other.port}, which is not configured"):
            await http.text("thing")
        assert seen == []
    allowed = frozenset({f"localhost:{other.port}"})
    async with reached(Answers(web.Response(status=302, headers=there)), elsewhere=allowed) as http:
        assert await http.text("thing") == "the log"
        assert seen == [None]
    await other.close()


async def test_of_an_allowed_host_no_other_port_is_asked() -> None:
    there = {"Location": "http://localhost:9/log"}
    async with reached(Answers(web.Response(status=302, headers=there)), elsewhere=frozenset({"localhost"})) as http:
        with pytest.raises(ToolUnavailable, match="redirects to localhost:9, which is not configured"):
            await http.text("thing")


async def test_an_answer_of_another_form_is_no_answer() -> None:
    async with reached(Answers(web.Response(text='{"runs": 7}'))) as http:
        with pytest.raises(ToolUnavailable, match="answered thing in an unexpected format"):
            await http.parsed("thing", TypeAdapter(list[int]))


async def test_a_server_that_is_down_is_named() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ToolUnavailable, match="Loki cannot be reached"):
            await Http("Loki", "http://127.0.0.1:9", session).text("thing")


@every_case(
    ("status", "body", "reason"),
    [
        (422, {"status": "error", "errorType": "execution", "error": "query timed out"}, "422: query timed out"),
        (
            400,
            "parse error: the query is longer (5000 > 1000)\n",
            "400: parse error: the query is longer (5000 > 1000)",
        ),
        (404, {"kind": "Status", "message": 'pods "b" not found', "reason": "NotFound"}, '404: pods "b" not found'),
        (410, {"message": "Logs are no longer available."}, "410: Logs are no longer available."),
        (400, {"message": {"ref": ["is missing", "is empty"]}}, "400: ref: is missing; is empty"),
        (403, {"error": "insufficient_scope", "error_description": "needs api"}, "403: insufficient_scope: needs api"),
        (403, {"$id": "1", "innerException": None, "message": "TF400813: not authorized"}, "403: TF400813: not auth"),
        (400, {"error": {"message": "Invalid Input", "code": 2001, "errors": ["Since is wrong."]}}, "Since is wrong"),
        (400, {"errorMessages": [], "errors": {"type": "is invalid"}}, "400: type: is invalid"),
        (400, '\ufeff"bad matcher"', "400: bad matcher"),
        (500, {"title": "Internal", "detail": "disk\n is\u202e full"}, "500: Internal: disk is full"),
        (429, {"message": "slow down"}, "429: slow down"),
        (404, "<html><h1>404</h1></html>", "HTTP status 404."),
        (404, '{"message": "cut o', "HTTP status 404."),
        (404, [[[]]], "HTTP status 404."),
        (404, "[" * 50_000, "HTTP status 404."),
        (401, {"message": "tool-token is revoked"}, "401: … is revoked"),
        (400, "x" * 5_000, "400: " + "x" * 299 + "…"),
    ],
)
async def test_a_refusal_gives_the_reason_of_the_server_on_one_line(status: int, body: object, reason: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    async with reached(Answers(web.Response(text=text, status=status))) as http:
        with pytest.raises(ToolUnavailable) as caught:
            await http.text("thing")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 450
