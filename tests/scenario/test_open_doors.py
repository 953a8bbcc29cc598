"""A door without a secret lets in this machine alone: not what a proxy passes on, and no name of somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.config.section import WebhooksSection
from bot.web.routes import Webhooks, build_app
from bot.web.webhook_sources import webhook_sources
from core.model.incident import AlertDelivery
from tests.fakes.clock import FakeClock
from tests.fakes.door_secrets import KNOWN, SECRET
from tests.fakes.teams_adapter import open_teams
from tests.scenario.webhooks import alert, delivery

DOORS = [
    ("POST", "/webhooks/alertmanager"),
    ("POST", "/api/messages"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/x"),
]
PROXIES = [
    {"Forwarded": "for=203.0.113.7"},
    {"X-Forwarded-For": "203.0.113.7"},
    {"x-forwarded-proto": "https"},
    {"X-Real-IP": "203.0.113.7"},
    {"Via": "1.1 proxy"},
]
ALERT = delivery("group", alert())

Client = TestClient[web.Request, web.Application]


class Bot:
    """The application in front of doors that remember who came in."""

    def __init__(self, *, locked: bool, is_scraped: bool = False) -> None:
        self.came_in: list[str] = []
        sources = webhook_sources(WebhooksSection())
        self.app = build_app(
            webhooks=Webhooks(sources, self._accept, SECRET if locked else None, FakeClock()),
            slack=self._let_in,
            teams=self._let_in,
            ready=self._ready,
            add_console=lambda app: app.router.add_get("/", self._let_in) and None,
            has_console_token=locked,
            has_teams_app=locked,
            is_scraped=is_scraped,
        )

    async def _accept(self, delivery: AlertDelivery) -> str:
        self.came_in.append(delivery.source)
        return "i1"

    async def _let_in(self, request: web.Request) -> web.Response:
        self.came_in.append(request.path)
        return web.Response()

    async def _ready(self) -> str:
        return ""


@pytest.fixture
async def open_bot() -> AsyncIterator[tuple[Bot, Client]]:
    bot = Bot(locked=False)
    async with TestClient(TestServer(bot.app)) as client:
        yield bot, client


@pytest.fixture
async def locked_bot() -> AsyncIterator[tuple[Bot, Client]]:
    bot = Bot(locked=True, is_scraped=True)
    async with TestClient(TestServer(bot.app)) as client:
        yield bot, client


async def status(client: Client, door: tuple[str, str], headers: dict[str, str]) -> int:
    method, path = door
    body: dict[str, Any] = {"json": ALERT} if method == "POST" else {}
    async with client.request(method, path, headers=headers, **body) as response:
        if response.status == 403:
            assert (await response.json())["error"].endswith(".")
        return response.status


@pytest.mark.parametrize("proxy", PROXIES, ids=lambda headers: next(iter(headers)))
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[1])
async def test_a_proxy_on_this_machine_opens_no_door_without_a_secret(
    open_bot: tuple[Bot, Client], door: tuple[str, str], proxy: dict[str, str]
) -> None:
    bot, client = open_bot
    assert await status(client, door, proxy) == 403
    assert bot.came_in == []


async def test_a_proxy_that_adds_no_header_but_speaks_http_1_0_opens_no_door_without_a_secret(
    open_bot: tuple[Bot, Client],
) -> None:
    bot, client = open_bot
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(f"GET / HTTP/1.0\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode())
    assert b" 403 " in await reader.readline()
    writer.close()
    assert bot.came_in == []


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8080", "localhost.", "[::2]", "0.0.0.0", "["])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[1])
async def test_a_foreign_name_for_this_machine_opens_no_door_without_a_secret(
    open_bot: tuple[Bot, Client], door: tuple[str, str], host: str
) -> None:
    bot, client = open_bot
    assert await status(client, door, {"Host": host}) in {400, 403}
    assert bot.came_in == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080"])
async def test_this_machine_is_let_in_under_its_local_names(open_bot: tuple[Bot, Client], host: str) -> None:
    bot, client = open_bot
    answers = [await status(client, door, {"Host": host}) for door in DOORS]
    assert answers == [202, 200, 200, 200, 404]
    assert bot.came_in == ["alertmanager", "/api/messages", "/"]


@pytest.mark.parametrize("headers", [{"Host": "bot.example", "X-Forwarded-For": "203.0.113.7"}])
async def test_a_proxy_leads_to_doors_with_a_secret_and_to_no_metrics(
    locked_bot: tuple[Bot, Client], headers: dict[str, str]
) -> None:
    _, client = locked_bot
    answers = [await status(client, door, headers | KNOWN) for door in DOORS]
    assert answers == [202, 200, 403, 200, 404]
    assert await status(client, ("GET", "/metrics"), {"Host": "10.0.0.7:8080"}) == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_are_answered_under_any_name(open_bot: tuple[Bot, Client], path: str) -> None:
    _, client = open_bot
    assert await status(client, ("GET", path), {"Host": "10.0.0.7:8080", "X-Forwarded-For": "203.0.113.7"}) == 200


@pytest.mark.parametrize(
    "service_url",
    ["https://smba.trafficmanager.net/emea/", "http://evil.localhost/", "https://x.127.0.0.1/", "http://１２７.0.0.1/"],
)
async def test_without_credentials_no_service_url_but_one_on_this_machine_is_posted_to(service_url: str) -> None:
    async with open_teams("agents", anonymous=True, tenant_ids=frozenset()) as teams:
        answered = await teams.post(teams.connector.activity(serviceUrl=service_url))
        assert answered.status == 401
        assert (teams.inbox.questions, teams.references.stored) == ([], {})
