"""A real Alertmanager and a real Prometheus: what they say of an alert that fires, is silenced, and is over."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.alerts.alertmanager import FORMAT, parse
from adapters.http import Http
from adapters.tools.alertmanager import Alertmanager, PrometheusAlerts
from core.incidents.folding import open_from
from core.model.alert import AlertDelivery
from core.model.conversation import Place, Platform
from core.model.silences import silenced_now
from tests.external.monitoring import SERVICE, monitoring

pytestmark = pytest.mark.external

TIMEOUT = 60.0  # seconds for an alert to come through


async def test_a_real_silence_is_read_and_a_real_alert_is_told_from_one_that_is_over(tmp_path: Path) -> None:
    delivered: asyncio.Queue[AlertDelivery] = asyncio.Queue()

    async def handle(request: web.Request) -> web.Response:
        await delivered.put(parse(await request.read(), datetime.now(UTC)))
        return web.Response()

    app = web.Application()
    app.router.add_post("/webhook", handle)
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession() as session,
        monitoring(tmp_path, str(server.make_url("/webhook"))) as running,
        asyncio.timeout(2 * TIMEOUT),
    ):
        alertmanager = Alertmanager(
            "Alertmanager", Http("Alertmanager", running.alertmanager_url, session), FORMAT.source
        )
        prometheus = PrometheusAlerts("Prometheus", Http("Prometheus", running.prometheus_url, session))
        await alertmanager.check()
        running.till.latency = 4.0
        incident = open_from(await delivered.get(), "i1", Place(Platform.CONSOLE, "incidents"))
        assert (await alertmanager.firing(incident)).fires is True
        assert (await prometheus.firing(incident)).fires is True
        await _silence(session, running.alertmanager_url)
        silenced = silenced_now(incident, await alertmanager.silences(), (), datetime.now(UTC))
        assert silenced is not None
        assert (silenced.silenced_by, silenced.reason) == ("Alertmanager", "new ledger")
        assert (await alertmanager.firing(incident)).fires is True, "silenced, it fires all the same"
        running.till.latency = 0.2
        while (await prometheus.firing(incident)).fires is not False:
            await running.till.scraped_again(1)
        assert (await alertmanager.firing(incident)).fires is not False, "it was started a moment ago"


async def _silence(session: aiohttp.ClientSession, url: str) -> None:
    now = datetime.now(UTC)
    body = {
        "matchers": [{"name": "service", "value": SERVICE, "isRegex": False, "isEqual": True}],
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(hours=1)).isoformat(),
        "createdBy": "ada",
        "comment": "new ledger",
    }
    async with session.post(f"{url}/api/v2/silences", json=body) as response:
        assert response.status == 200, await response.text()
