"""A storm on the first day: ten services with five alerts each within a minute, grouped as in Alertmanager's example."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.door_secrets import KNOWN
from tests.folders import copy_folder
from tests.scenario import slack
from tests.scenario.home import Home
from tests.scenario.slack import WatchedSlack
from tests.scenario.webhooks import alert, delivery

CALLS = """\
dependencies:
  web: [api, search]
  admin: [api]
  api: [orders, basket]
  billing: [orders]
  mail: [orders]
  orders: [db-proxy]
  basket: [db-proxy]
  search: [db-proxy]
  db-proxy: [pg]
"""
CASCADE = ("web", "admin", "api", "billing", "mail", "orders", "basket", "search", "db-proxy", "pg")
UNRELATED = ("badge", "crane", "dock", "ferry", "gate", "hatch", "ledger", "mooring", "pilot", "radar")
NAMES = ("ErrorsHigh", "LatencyHigh", "PodsRestarting", "QueueLong", "ReplicasMissing")

MINUTE = timedelta(minutes=10)  # as the bots of this test count it: their minute must not depend on the machine
SLOW = {
    "core.incidents.folding.STORM": MINUTE,
    "handlers.incidents.arrange_incident.STORM": MINUTE,
    "handlers.incidents.hold_incident.MINUTE": MINUTE,
}
TIMEOUT = 120.0  # seconds for fifty incidents


@pytest.fixture
async def home(furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    copy_folder(furnished, tmp_path)
    config = tmp_path / "company/plumbline.yaml"
    written = config.read_text().replace("dependencies:\n  till: [shelf]\n", CALLS)
    config.write_text("".join(line for line in written.splitlines(keepends=True) if not line.startswith("storm:")))
    async with WatchedSlack() as chat:
        yield Home(tmp_path, chat)


def storm_of(services: Iterable[str]) -> list[dict[str, Any]]:
    """Five alerts of each service, each in a group of its own; the first is critical, the others are warnings."""
    return [
        delivery(
            f'{{}}:{{alertname="{name}", service="{service}"}}',
            alert(f"{name} {service}", service=service, alertname=name, severity="warning" if number else "critical")
            | {"annotations": {"summary": f"{service}: {name}"}},
        )
        for number, name in enumerate(NAMES)
        for service in services
    ]


async def send(address: str, bodies: Iterable[dict[str, Any]]) -> None:
    async with aiohttp.ClientSession(headers=KNOWN) as session:

        async def one(body: dict[str, Any]) -> None:
            async with session.post(f"{address}webhooks/alertmanager", json=body) as response:
                assert response.status == 202, await response.text()

        await asyncio.gather(*map(one, bodies))


def roots(chat: WatchedSlack) -> list[dict[str, Any]]:
    return [message for message in chat.messages if "thread_ts" not in message]


def shown(chat: WatchedSlack) -> str:
    """All that the channel shows without opening a thread."""
    return json.dumps([message["blocks"] for message in roots(chat)], ensure_ascii=False)


@pytest.mark.external  # 20 s each
@pytest.mark.parametrize(
    ("services", "counts"),
    [
        (CASCADE, ["49 more incidents with 49 alerts, 49 still open"]),
        (UNRELATED, ["4 more incidents with 4 alerts, 4 still open", "9 incidents with 45 alerts"]),
    ],
    ids=["a cascade", "ten unrelated services"],
)
async def test_fifty_alerts_are_at_most_two_messages_that_count_them_all_after_a_restart_in_their_middle(
    home: Home, services: tuple[str, ...], counts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack, "TIMEOUT", TIMEOUT)
    bodies = storm_of(services)
    async with home.life(constants=SLOW) as bot:
        await send(await bot.address(), bodies[:25])
        bot.kill()
    async with home.life(constants=SLOW) as bot:
        await send(await bot.address(), bodies[25:])
        await home.slack.until(lambda: all(shown(home.slack).count(count) >= counts.count(count) for count in counts))
        await bot.stop()
    assert len(roots(home.slack)) == len(counts) <= 2
    assert all(service in shown(home.slack) for service in services), "every service has a critical alert"
