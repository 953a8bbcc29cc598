"""Real monitoring: what Alertmanager sends is understood, and what Prometheus knows is read."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.alerts.alertmanager import parse
from adapters.http import Http
from core.model.alert import AlertDelivery, AlertStatus, Severity
from core.ports import TimeWindow
from tests.external.monitoring import READY, SERVICE, answers, free_port, monitoring
from tests.fakes.readers import reader
from tests.scenario.bot_client import BotClient, incidents, is_done
from tests.scenario.company import write_company

pytestmark = pytest.mark.external

TIMEOUT = 60.0  # seconds for an alert to come through
TOKEN = "one-token-for-every-door"
ROOT = Path(__file__).parents[2]


class Receiver:
    """Takes webhooks as Plumbline does."""

    def __init__(self) -> None:
        self.deliveries: asyncio.Queue[AlertDelivery] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.Response:
        await self.deliveries.put(parse(await request.read(), datetime.now(UTC)))
        return web.Response()

    async def next_delivery(self) -> AlertDelivery:
        async with asyncio.timeout(TIMEOUT):
            return await self.deliveries.get()


@pytest.fixture
async def receiver() -> AsyncIterator[tuple[Receiver, str]]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/webhooks/alertmanager", receiver.handle)
    async with TestServer(app) as server:
        yield receiver, str(server.make_url("/webhooks/alertmanager"))


async def test_a_real_alert_is_understood_when_it_fires_and_when_it_resolves(
    receiver: tuple[Receiver, str], tmp_path: Path
) -> None:
    webhooks, url = receiver
    async with monitoring(tmp_path, url) as running:
        running.till.latency = 4.0
        fired = await webhooks.next_delivery()
        (alert,) = fired.alerts
        assert (alert.name, alert.service, alert.severity) == ("TillLatencyHigh", SERVICE, Severity.CRITICAL)
        assert (alert.summary, alert.description) == ("The till answers in 4 s", "Customers wait to pay.")
        assert alert.status is AlertStatus.FIRING
        assert fired.received_at - timedelta(minutes=1) < alert.starts_at <= fired.received_at
        running.till.latency = 0.2
        resolved = await webhooks.next_delivery()
        assert resolved.group_key == fired.group_key
        assert resolved.key != fired.key
        assert [(one.fingerprint, one.status) for one in resolved.alerts] == [(alert.fingerprint, AlertStatus.RESOLVED)]
        assert resolved.alerts[0].ends_at is not None


async def test_a_real_prometheus_is_read_by_service_and_window(receiver: tuple[Receiver, str], tmp_path: Path) -> None:
    _, url = receiver
    async with monitoring(tmp_path, url) as running, aiohttp.ClientSession() as session:
        async with asyncio.timeout(TIMEOUT):
            await running.till.scraped_again(3)
        now = datetime.now(UTC)
        window = TimeWindow(now - timedelta(minutes=1), now + timedelta(seconds=1))
        tool = reader("prometheus", Http("Prometheus", running.prometheus_url, session))
        series = {one.metric: one for one in await tool.series(SERVICE, window)}
        assert series["till_latency_seconds"].values[-1] == 0.2
        assert all(window.start <= at < window.end for at in series["till_latency_seconds"].times)
        assert not any(name.startswith(("scrape_", "ALERTS")) for name in series)
        assert await tool.series("tills", window) != []  # the job's name is a service's name too
        assert await tool.series('nobody"} or {service="till', window) == []


@asynccontextmanager
async def serving_bot(folder: Path, port: int, prometheus_url: str) -> AsyncIterator[BotClient]:
    """The bot as its own process, with the small company and a Prometheus among its tools."""
    config = write_company(folder / "company")
    with config.open("a", encoding="utf-8") as file:
        file.write(f"  - {{kind: prometheus, url: '{prometheus_url}'}}\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PLUMBLINE_DATA_DIR": str(folder / "data"),
        "PLUMBLINE_CONFIG": str(config),
        "PLUMBLINE_PORT": str(port),
        "PLUMBLINE_WEBHOOK_SECRET": TOKEN,
        "PLUMBLINE_CONSOLE_TOKEN": TOKEN,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", "serve", env=environment, cwd=ROOT)
    try:
        async with asyncio.timeout(READY):
            await answers(f"http://127.0.0.1:{port}/readyz")
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session:
            yield BotClient(f"http://127.0.0.1:{port}/", session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_a_real_alert_is_posted_triaged_explained_and_resolved_in_the_channel(tmp_path: Path) -> None:
    port = free_port()
    webhook = f"http://127.0.0.1:{port}/webhooks/alertmanager"
    async with (
        monitoring(tmp_path, webhook, TOKEN) as running,
        serving_bot(tmp_path, port, running.prometheus_url) as bot,
    ):
        running.till.latency = 4.0
        done = await bot.until("incidents", lambda messages: next(filter(is_done, incidents(messages)), None))
        assert done["title"] == "The till answers in 4 s"
        assert done["findings"]["owner"]["owner"]["team_id"] == "payments"
        assert done["findings"]["explanation"]["gaps"] == []
        running.till.latency = 0.2
        await bot.incident(done["id"], lambda incident: incident["state"] == "resolved")
        assert len(incidents(await bot.messages("incidents"))) == 1
