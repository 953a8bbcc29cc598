"""A door without a secret lets in this machine alone: not what a proxy passes on, and no name of somebody else's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.chat import DOCTOR
from bot.commands.doctor import check_refusals
from bot.web.routes import FILE, MAX_KEPT, REFUSALS, Refusals, Webhooks, build_app
from bot.web.webhook_sources import webhook_sources
from core.model.alert import AlertDelivery
from core.model.conversation import Platform
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
    {"CF-Connecting-IP": "203.0.113.7"},
    {"CF-Ray": "203.0.113.7"},
    {"True-Client-IP": "203.0.113.7"},
    {"Fastly-Client-IP": "203.0.113.7"},
    {"X-Envoy-External-Address": "203.0.113.7"},
    {"X-Original-URL": "203.0.113.7"},
    {"X-Rewrite-URL": "203.0.113.7"},
    {"X-Client-IP": "203.0.113.7"},
    {"X-Cluster-Client-IP": "203.0.113.7"},
    {"X-ProxyUser-Ip": "203.0.113.7"},
    {"X-Original-Forwarded-For": "203.0.113.7"},
    {"X-Amzn-Trace-Id": "203.0.113.7"},
    {"X-Azure-ClientIP": "203.0.113.7"},
    {"Fly-Client-IP": "203.0.113.7"},
    {"CDN-Loop": "203.0.113.7"},
    {"Client-IP": "203.0.113.7"},
    {"CloudFront-Viewer-Address": "203.0.113.7"},
    {"DO-Connecting-IP": "203.0.113.7"},
    {"X-Oracle-Client-IP": "203.0.113.7"},
    {"X-Scheme": "https"},
    {"X-Auth-Request-Email": "a@b.example"},
    {"Tailscale-User-Login": "a"},
    {"Remote-User": "a"},
    {"X-Remote-Addr": "203.0.113.7"},
    {"X-Host": "203.0.113.7"},
    {"X-Forwarded": "203.0.113.7"},
    {"X_Forwarded_For": "203.0.113.7"},
    # Of gateways that say who their user is.
    {"X-Forwarded-User": "ada"},
    {"X-Auth-Request-User": "ada"},
    {"X-Goog-Authenticated-User-Email": "ada@b.example"},
    {"X-MS-Client-Principal-Name": "ada@b.example"},
    {"X-Amzn-Oidc-Identity": "ada"},
    {"Cf-Access-Authenticated-User-Email": "ada@b.example"},
    {"X-Authentik-Username": "ada"},
    {"X-Pomerium-Jwt-Assertion": "ada"},
    {"X-Token-User-Name": "ada"},
    {"X-Teleport-Login": "ada"},
    {"X-WEBAUTH-USER": "ada"},
    {"SSL-Client-S-DN": "CN=ada"},
    {"Some-Gateway-Of-Next-Year": "ada"},
]
BROWSERS: list[dict[str, str]] = [
    {
        "Accept-Language": "de,en;q=0.5",
        "Cache-Control": "no-cache",
        "Cookie": "a=b",
        "DNT": "1",
        "Pragma": "no-cache",
        "Priority": "u=0, i",
        "Referer": "http://127.0.0.1/",
        "Sec-CH-UA-Mobile": "?0",
        "Sec-Fetch-Site": "same-origin",
        "Sec-GPC": "1",
        "TE": "trailers",
        "Upgrade-Insecure-Requests": "1",
    },
    {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1/", "X-Requested-With": "XMLHttpRequest"},
    {"If-None-Match": '"a"', "Range": "bytes=0-9", "Last-Event-ID": "7"},
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Request-ID": "7"},
    {"X-Prometheus-Scrape-Timeout-Seconds": "10", "Authorization": "Bearer other"},
    {"Sentry-Hook-Resource": "issue", "Sentry-Hook-Timestamp": "7", "Request-ID": "7"},
    {"Idempotency-Key": '"7"', "Sec-Fetch-Mode": "navigate"},  # of Firefox, if its preference is set
]
ALERT = delivery("group", alert())

Client = TestClient[web.Request, web.Application]


class Bot:
    """The application in front of doors that remember who came in."""

    def __init__(self, *, locked: bool, is_scraped: bool = False, refusals: Refusals | None = None) -> None:
        self.came_in: list[str] = []
        sources = webhook_sources({})
        self.app = build_app(
            webhooks=Webhooks(sources, self._accept, SECRET if locked else None, FakeClock()),
            chats={Platform.SLACK: self._let_in, Platform.TEAMS: self._let_in},
            ready=self._ready,
            add_console=lambda app: app.router.add_get("/", self._let_in) and None,
            is_page_guarded=locked,
            playgrounds=() if locked else [Platform.TEAMS],
            is_scraped=is_scraped,
            refusals=refusals,
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


async def test_a_proxy_on_this_machine_opens_no_door_without_a_secret(open_bot: tuple[Bot, Client]) -> None:
    bot, client = open_bot
    opened = [(*door, proxy) for door, proxy in product(DOORS, PROXIES) if await status(client, door, proxy) != 403]
    assert opened == []
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


async def test_a_foreign_name_for_this_machine_opens_no_door_without_a_secret(open_bot: tuple[Bot, Client]) -> None:
    bot, client = open_bot
    hosts = ("evil.example", "127.0.0.1.evil.example:8080", "localhost.", "[::2]", "0.0.0.0", "[")
    opened = [
        (*door, host)
        for door, host in product(DOORS, hosts)
        if await status(client, door, {"Host": host}) not in {400, 403}
    ]
    assert opened == []
    assert bot.came_in == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080"])
async def test_this_machine_is_let_in_under_its_local_names(open_bot: tuple[Bot, Client], host: str) -> None:
    bot, client = open_bot
    answers = [await status(client, door, {"Host": host}) for door in DOORS]
    assert answers == [202, 200, 200, 200, 404]
    assert bot.came_in == ["alertmanager", "/api/messages", "/"]


@pytest.mark.parametrize("headers", BROWSERS, ids=lambda headers: next(iter(headers)))
async def test_browsers_and_programs_of_this_machine_are_let_in(
    open_bot: tuple[Bot, Client], headers: dict[str, str]
) -> None:
    _, client = open_bot
    assert [await status(client, door, headers) for door in DOORS] == [202, 200, 200, 200, 404]


@pytest.mark.parametrize("path", ["/mcp", "/webhooks/alertmanager", "/api/messages"])
async def test_another_method_is_named_to_clients_with_headers_of_their_own(
    path: str, open_bot: tuple[Bot, Client]
) -> None:
    bot, client = open_bot
    async with client.get(path, headers={"MCP-Protocol-Version": "2025-11-25"}) as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert bot.came_in == []


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
    async with open_teams("builtin", anonymous=True, tenant_ids=frozenset()) as teams:
        answered = await teams.post(teams.connector.activity(serviceUrl=service_url))
        assert answered.status == 401
        assert (teams.inbox.questions, teams.references.stored) == ([], {})


@pytest.mark.parametrize(
    "title", [b"\\ud83d", b"\\udc00 late", b"\xed\xa0\xbd"], ids=["high half", "low half", "raw half"]
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
async def test_json_with_half_of_a_character_or_a_byte_order_mark_is_accepted(title: bytes, mark: bytes) -> None:
    body = mark + json.dumps(ALERT).encode().replace(
        b'"status": "firing"', b'"note": "' + title + b'", "status": "firing"'
    )
    bot = Bot(locked=True)
    async with TestClient(TestServer(bot.app)) as client:
        headers = {**KNOWN, "Content-Type": "application/json"}
        answer = await client.post("/webhooks/alertmanager", data=body, headers=headers)
        assert answer.status == 202
    assert bot.came_in == ["alertmanager"]


@pytest.mark.parametrize(
    ("path", "headers", "body", "sender", "reason"),
    [
        ("/webhooks/alertmanager", KNOWN, b"{", "alertmanager", "malformed"),
        ("/webhooks/alertmanager", {}, b"{}", "alertmanager", "wrong secret"),
        ("/webhooks/nobody", KNOWN, b"{}", "unknown webhook", "unknown address"),
        ("/webhooks/alertmanager", KNOWN, b" " * (9 << 20), "alertmanager", "too large"),
    ],
)
async def test_what_is_refused_is_counted_logged_and_kept_by_sender(
    tmp_path: Path, path: str, headers: dict[str, str], body: bytes, sender: str, reason: str
) -> None:
    bot = Bot(locked=True, refusals=Refusals(tmp_path))
    counted = REFUSALS.labels(sender, reason)._value.get()
    with structlog.testing.capture_logs() as lines:
        async with TestClient(TestServer(bot.app)) as client:
            await client.post(path, data=BytesIO(body), headers={**headers, "Content-Type": "application/json"})
    assert REFUSALS.labels(sender, reason)._value.get() == counted + 1
    (line,) = [line for line in lines if line["event"] == "request refused"]
    assert (line["sender"], line["reason"]) == (sender, reason)
    (finding,) = check_refusals(tmp_path)
    assert sender in finding.what
    assert reason in finding.remedy


async def test_stranger_who_knocks_often_does_not_displace_what_was_refused_before(tmp_path: Path) -> None:
    refusals = Refusals(tmp_path)
    bot = Bot(locked=True, refusals=refusals)
    async with TestClient(TestServer(bot.app)) as client:
        for headers in (KNOWN, *[{}] * (MAX_KEPT + 1)):
            await client.post(
                "/webhooks/alertmanager", data=b"{", headers={**headers, "Content-Type": "application/json"}
            )
    refusals.flush()
    (finding,) = check_refusals(tmp_path)
    malformed, wrong = finding.remedy.splitlines()
    assert "malformed" in malformed
    assert wrong.endswith(f"({MAX_KEPT + 1} times)")


@pytest.mark.parametrize(("headers", "is_told"), [({}, False), ({"Authorization": "Bearer wrong"}, True)])
async def test_the_question_of_doctor_is_no_refusal_but_a_wrong_credential_is(
    tmp_path: Path, headers: dict[str, str], *, is_told: bool
) -> None:
    refusals = Refusals(tmp_path)
    async with TestClient(TestServer(Bot(locked=True, refusals=refusals).app)) as client:
        asked = await client.post("/webhooks/alertmanager", json={}, headers={"User-Agent": DOCTOR, **headers})
        assert asked.status == 401
    refusals.flush()
    assert bool(list(check_refusals(tmp_path))) == is_told


@pytest.mark.parametrize("text", ["", "null", '[{"sender": "slack"}]'])
async def test_bot_starts_on_unreadable_list_of_refusals(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    Refusals(tmp_path).add("2026-03-14T09:30:00+00:00", "slack", 401, "The signature is wrong.")
    (finding,) = check_refusals(tmp_path)
    assert finding.remedy == "2026-03-14T09:30:00+00:00 wrong secret: The signature is wrong."
