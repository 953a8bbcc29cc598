"""Tokens by client credentials and signatures of AWS, which readers are let in with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from adapters.http import RenewedToken
from adapters.readers.sections import EARLY, AwsSigner, issued_token
from core.model.errors import ToolRefused, ToolUnavailable
from tests.cases import every_case

AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
FORM = {"grant_type": "client_credentials", "client_id": "app", "client_secret": "hidden", "scope": "logs/.default"}


def signer(token: str = "") -> AwsSigner:
    return AwsSigner(
        "service", "us-east-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token, now=lambda: AT
    )


@pytest.mark.parametrize(
    ("method", "url", "headers", "body", "signature"),
    [
        ("GET", "/", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            {},
            b"",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "POST",
            "/",
            {"Content-Type": "application/x-www-form-urlencoded"},
            b"Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)
def test_a_signature_is_that_of_the_test_suite_of_aws(
    method: str, url: str, headers: dict[str, str], body: bytes, signature: str
) -> None:
    signed = signer().signed(method, URL(f"https://example.amazonaws.com{url}"), headers, body)
    assert signed["Authorization"].endswith(f"Signature={signature}")
    assert signed["X-Amz-Date"] == "20150830T123600Z"


def test_a_session_token_is_sent_and_signed() -> None:
    signed = signer("session").signed("GET", URL("https://example.amazonaws.com/"), {}, b"")
    assert signed["X-Amz-Security-Token"] == "session"
    assert "SignedHeaders=host;x-amz-date;x-amz-security-token" in signed["Authorization"]


class Login:
    """Gives the next answer to each request for a token."""

    def __init__(self, answers: Sequence[tuple[int, Any]]) -> None:
        self.answers = list(answers)
        self.forms: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.forms.append(dict(await request.post()))
        status, body = self.answers.pop(0)
        return web.json_response(body, status=status, headers={"Retry-After": "3"})


async def headers_of(login: Login, *, times: int = 1, refused: bool = False) -> list[str]:
    app = web.Application()
    app.router.add_post("/token", login.handle)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        issue = partial(issued_token, "Logs", session, str(server.make_url("/token")), FORM)
        token = RenewedToken(issue, EARLY)
        found: list[str] = []
        for _ in range(times):
            found.append(await token.header())
            if refused:
                assert token.refused(found[-1])
        return found


def issued(value: str, lifetime: float = 3_600) -> tuple[int, Any]:
    return 200, {"access_token": value, "token_type": "Bearer", "expires_in": lifetime}


async def test_a_token_is_asked_for_once_as_long_as_it_lives() -> None:
    login = Login([issued("one"), issued("two")])
    assert await headers_of(login, times=3) == ["Bearer one"] * 3
    assert login.forms == [FORM]


async def test_a_token_that_ends_or_is_refused_is_replaced() -> None:
    assert await headers_of(Login([issued("one", 30), issued("two")]), times=2) == ["Bearer one", "Bearer two"]
    assert await headers_of(Login([issued("one"), issued("two")]), times=2, refused=True) == [
        "Bearer one",
        "Bearer two",
    ]


@every_case(
    ("answer", "error", "said"),
    [
        ((400, {"error": "invalid_client", "error_description": "hidden is wrong"}), ToolRefused, "… is wrong"),
        ((401, {"error": "invalid_client"}), ToolRefused, "check the client"),
        ((429, {}), ToolUnavailable, "429"),
        ((503, {}), ToolUnavailable, "503"),
        ((200, {"token": "x"}), ToolUnavailable, "unexpected format"),
    ],
)
async def test_a_login_that_gives_no_token_is_named_without_the_secret(
    answer: tuple[int, Any], error: type[ToolUnavailable], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        await headers_of(Login([answer]))
    assert "The login of Logs" in str(caught.value)
    assert "hidden" not in str(caught.value)
