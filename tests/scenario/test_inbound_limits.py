"""Every inbound door is bounded: how often one sender may come, how long a body may take, and what a body may hold."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.alerts.generic import GenericSection
from bot.web import routes
from bot.web.routes import Webhooks, build_app, is_server_fault
from bot.web.webhook_sources import webhook_sources
from core.model.alert import AlertDelivery
from core.model.conversation import Platform
from core.model.errors import Unauthorized
from tests.fakes.clock import FakeClock
from tests.fakes.monitoring_systems.home_made import GENERIC
from tests.fakes.monitoring_systems.system import MonitoringSystem, encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS
from tests.scenario.webhooks import alert, delivery

SECRET = "shared between all"
KNOWN = {"Authorization": f"Bearer {SECRET}"}
JSON = {"Content-Type": "application/json"}
ALERTMANAGER = "/webhooks/alertmanager"
WEBHOOKS = {"generic": GenericSection.model_validate(GENERIC)}
BODY = json.dumps(delivery("group", alert())).encode()


@dataclass
class Door:
    """The application, a clock, what was accepted, and a chat that is signed with the word `signed`."""

    client: TestClient[web.Request, web.Application]
    clock: FakeClock
    accepted: list[AlertDelivery] = field(default_factory=list)

    async def send(
        self, body: bytes | AsyncIterator[bytes] = BODY, path: str = ALERTMANAGER, headers: Mapping[str, str] = KNOWN
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        data = BytesIO(body) if isinstance(body, bytes) else body
        async with self.client.post(path, data=data, headers={**JSON, **headers}) as response:
            answer = await response.json() if response.content_type == "application/json" else {}
            return response.status, answer, dict(response.headers)


@pytest.fixture
async def door(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    monkeypatch.setattr(routes, "DELIVERIES", 3)
    monkeypatch.setattr(routes, "REFUSED_BURST", 3)
    clock, accepted = FakeClock(datetime.now(UTC)), list[AlertDelivery]()

    async def accept(delivery: AlertDelivery) -> str:
        accepted.append(delivery)
        return "i1"

    async def chat(request: web.Request) -> web.StreamResponse:
        await request.read()
        if request.headers.get("X-Signature") != "signed":
            raise Unauthorized("This is not signed.")
        return web.Response()

    async def ready() -> str:
        return ""

    app = build_app(
        webhooks=Webhooks(webhook_sources(WEBHOOKS), accept, SECRET, clock),
        chats={Platform.SLACK: chat, Platform.TEAMS: chat},
        ready=ready,
        add_console=lambda _: None,
    )
    async with TestClient(TestServer(app)) as client:
        yield Door(client, clock, accepted)


# --- rates -----------------------------------------------------------------------------------------------------------


async def test_a_source_that_sends_too_much_is_asked_to_wait_and_nothing_of_it_is_accepted(door: Door) -> None:
    assert [(await door.send())[0] for _ in range(3)] == [202] * 3
    status, answer, headers = await door.send()
    assert (status, headers["Retry-After"]) == (429, "1")
    assert "webhooks a second came from alertmanager" in answer["error"]
    assert len(door.accepted) == 3
    door.clock.advance(1 / routes.DELIVERIES_PER_SECOND)
    assert (await door.send())[0] == 202


async def test_one_source_that_sends_too_much_takes_nothing_from_another(door: Door) -> None:
    for _ in range(4):
        await door.send()
    status, _, _ = await door.send(b"{}", "/webhooks/pagerduty", KNOWN)
    assert status == 400


async def test_who_goes_on_without_the_secret_is_asked_to_wait(door: Door) -> None:
    assert [(await door.send(headers={}))[0] for _ in range(3)] == [401] * 3
    status, answer, headers = await door.send(headers={})
    assert (status, headers["Retry-After"]) == (429, "1")
    assert answer["error"] == "Too many requests without a valid credential came from this address."
    assert door.accepted == []


@pytest.mark.parametrize("path", ["/slack/events", "/api/messages"])
async def test_what_a_chat_signed_is_taken_whatever_else_came_from_that_address(door: Door, path: str) -> None:
    assert [(await door.send(path=path, headers={}))[0] for _ in range(5)] == [401, 401, 401, 429, 429]
    assert [(await door.send(path=path, headers={"X-Signature": "signed"}))[0] for _ in range(50)] == [200] * 50
    assert (await door.send())[0] == 202


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/webhooks/alertmanager", "/slack/events", "/api/messages"])
async def test_a_body_that_does_not_arrive_is_given_up(door: Door, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(routes, "BODY_TIMEOUT", 0.05)
    never = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield BODY[:10]
        await never.wait()

    status, answer, _ = await door.send(slowly(), path, KNOWN)
    assert (status, answer["error"]) == (408, "The body did not arrive within 0 seconds.")
    assert door.accepted == []


def test_a_body_that_was_given_up_is_no_news_in_the_log() -> None:
    error = routes.BodyTooSlow("The body did not arrive.")
    record = logging.LogRecord("aiohttp.server", logging.ERROR, "", 0, "", (), (type(error), error, None))
    assert not is_server_fault(record)


async def test_a_connection_without_a_whole_request_is_closed(door: Door) -> None:
    async def handle(request: web.BaseRequest) -> web.Response:
        raise AssertionError("no whole request comes")

    server = await asyncio.get_running_loop().create_server(web.Server(handle, keepalive_timeout=0.05), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"POST /webhooks/alertmanager HTTP/1.1\r\nHost: loc")
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()


# --- bodies ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=SYSTEMS, ids=[system.__name__ for system in SYSTEMS])
def system(request: pytest.FixtureRequest) -> MonitoringSystem:
    return request.param("INC1", datetime.now(UTC) - timedelta(minutes=4))


HOSTILE = {
    "nested deeply": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a list nested deeply": b"[" * 200_000,
    "not a number": b'{"alerts": NaN}',
    "infinite": b'{"alerts": [Infinity, -Infinity]}',
    "an endless number": b'{"alerts": ' + b"9" * 100_000 + b"}",
    "an endless exponent": b'{"alerts": 1e999999999}',
    "half a character": rb'{"alerts": "\ud800"}',
    "half a character as a key": rb'{"\udfff": 1}',
    "many keys": b"{" + b",".join(b'"%d": 1' % number for number in range(100_000)) + b"}",
    "a list of many values": b"[" + b",".join([b'{"a": 1}'] * 100_000) + b"]",
    "the same key many times": b"{" + b",".join(b'"version": "4"' for _ in range(10_000)) + b"}",
    "a key that is no text": b"{1: 2}",
    "a comment": b'{"version": "4" /* four */}',
    "a byte order mark": b"\xef\xbb\xbf{}",
}


@pytest.mark.external  # seconds
async def test_a_hostile_body_is_refused_in_a_sentence(
    door: Door, system: MonitoringSystem, subtests: pytest.Subtests
) -> None:
    for name, body in HOSTILE.items():
        with subtests.test(name=name):
            door.clock.advance(1)  # the next is not one too many
            status, answer, _ = await door.send(body, f"/webhooks/{system.source}", KNOWN)
            assert (status, answer.get("error", "")[-1:]) == (400, ".") or answer == {"incident": None}
            assert door.accepted == []


async def test_of_a_key_that_is_there_twice_one_value_is_taken_and_no_alert_is_made_of_both(door: Door) -> None:
    one, other = json.dumps(delivery("group", alert("a1"))), json.dumps(delivery("group", alert("a2")))
    status, _, _ = await door.send(f"{one[:-1]}, {other[1:]}".encode())
    assert status == 202
    (taken,) = door.accepted
    assert [each.fingerprint for each in taken.alerts] == ["a2"]


MOMENTS = ["9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2038-01-19T03:14:08Z"]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_start_that_cannot_be_is_the_time_of_the_request(door: Door, moment: str) -> None:
    body = delivery("group", alert() | {"startsAt": moment})
    assert (await door.send(json.dumps(body).encode()))[0] == 202
    (taken,) = door.accepted
    assert taken.alerts[0].starts_at == door.clock.now()


@pytest.mark.external  # seconds
async def test_no_source_believes_a_time_in_the_future_or_before_1970(
    door: Door, system: MonitoringSystem, subtests: pytest.Subtests
) -> None:
    for moment in (*MOMENTS, "-1", "0", "1e400", "NaN", "99999999999999999999", "", "yesterday", None):
        with subtests.test(moment=moment):
            door.clock.advance(1)  # the next is not one too many
            door.accepted.clear()
            payload = _with_every_time(system.fire(), moment)
            status, _, _ = await door.send(encoded(payload), f"/webhooks/{system.source}", KNOWN)
            assert status in {202, 400}
            for taken in door.accepted:
                for each in taken.alerts:
                    assert datetime(1970, 1, 1, tzinfo=UTC) <= each.starts_at <= door.clock.now()


TIMES = ("at", "date", "time", "timestamp", "startsAt", "endsAt", "created", "updated", "occurred_at", "created_at")


def _with_every_time(value: Any, moment: str | None, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _with_every_time(each, moment, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_every_time(each, moment, name) for each in value]
    return moment if name in TIMES or name.lower().endswith(("at", "date", "time")) else value
