"""`eval load`: signed mentions and alerts at a steady rate against a bot of its own, and what became of each.

The bot is `plumbline serve` on the sample company in a process of its own; its Slack is a small server in this one
that notes every message. Arrivals follow the clock and not the answers, as they do in life.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from aiohttp import web
from rich.console import Console
from rich.table import Table
from slack_sdk.signature import SignatureVerifier

from adapters.store.database import open_database
from adapters.store.store import SqlStore
from bot.demo import SAMPLE_COMPANY, free_port
from bot.workspace import load_workspace
from core.errors import PlumblineError

SIGNING_SECRET = "load-test"  # noqa: S105 -- of a Slack that only this process knows
CHANNEL = "C0ASK"
GROUP_SIZE = 25  # alerts that belong to one group
START_TIMEOUT = 60.0  # seconds until the bot must be ready
SETTLE_TIMEOUT = 120.0  # seconds after the last event until everything must stand in the chat


@dataclass(slots=True)
class Sent:
    """What was sent: idempotency key → time of sending, and how long each acknowledgement took."""

    mentions: dict[str, float] = field(default_factory=dict[str, float])
    groups: dict[str, float] = field(default_factory=dict[str, float])
    alerts: int = 0
    acknowledgements: list[float] = field(default_factory=list[float])
    refused: int = 0


@dataclass(slots=True)
class Received:
    """What the chat got: thread → times of its posts; titles of root messages → times."""

    replies: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    roots: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    edits: int = 0


async def run(rate: float, seconds: float) -> dict[str, Any]:
    """Send `rate` events a second for `seconds`, wait until the chat is quiet, and count."""
    with tempfile.TemporaryDirectory(prefix="plumbline-load-") as folder:
        async with slack_server() as (slack_url, received), bot_process(Path(folder), slack_url) as bot:
            sent = await _send(bot.address, rate, seconds)
            await _settle(sent, received)
        stored = await _stored_alerts(Path(folder))
    return _figures(sent, received, stored, rate, seconds)


def print_table(figures: dict[str, Any], out: Console) -> None:
    table = Table("measure", "value")
    for name, value in figures.items():
        table.add_row(name, str(value))
    out.print(table)


@asynccontextmanager
async def slack_server() -> AsyncGenerator[tuple[str, Received]]:
    """The part of Slack's Web API that the bot uses: its address, and what it is told."""
    received = Received()
    ids = itertools.count(1)

    async def post(request: web.Request) -> web.Response:
        form = await _arguments(request)
        now = time.monotonic()
        if form.get("thread_ts"):
            received.replies.setdefault(str(form["thread_ts"]), []).append(now)
        else:
            received.roots.append((str(form.get("text", "")), now))
        return web.json_response({"ok": True, "channel": form.get("channel"), "ts": f"{next(ids)}.000100"})

    async def update(request: web.Request) -> web.Response:
        form = await _arguments(request)
        received.edits += 1
        return web.json_response({"ok": True, "channel": form.get("channel"), "ts": form.get("ts")})

    async def other(request: web.Request) -> web.Response:
        channel = {"id": CHANNEL, "name": "load", "is_channel": True, "is_private": False, "is_ext_shared": False}
        user = {"id": "U1", "name": "load", "profile": {"display_name": "load"}}
        identity = {"user_id": "U0BOT", "bot_id": "B0BOT", "team_id": "T1", "team": "load", "user": "plumbline"}
        return web.json_response({"ok": True, "channel": channel, "user": user, "messages": [], "url": "", **identity})

    app = web.Application(client_max_size=2**20)
    app.router.add_post("/chat.postMessage", post)
    app.router.add_post("/chat.update", update)
    app.router.add_route("*", "/{method}", other)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/", received
    finally:
        await runner.cleanup()


async def _arguments(request: web.Request) -> dict[str, Any]:
    return await request.json() if request.content_type == "application/json" else dict(await request.post())


@dataclass(frozen=True, slots=True)
class BotProcess:
    """A running bot: its address, and the number of its process."""

    address: str
    pid: int


@asynccontextmanager
async def bot_process(folder: Path, slack_url: str) -> AsyncGenerator[BotProcess]:
    """`plumbline serve` in a process of its own, ready to answer."""
    port = free_port(0)
    environment = os.environ | {
        "PLUMBLINE_CONFIG": str(SAMPLE_COMPANY / "plumbline.yaml"),
        "PLUMBLINE_DATA_DIR": str(folder),
        "PLUMBLINE_PORT": str(port),
        "SLACK_BOT_TOKEN": "xoxb-load-test",
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "SLACK_API_URL": slack_url,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "serve", env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        await _ready(address, process)
        yield BotProcess(address, process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(address: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and process.returncode is None:
            try:
                async with session.get(f"{address}readyz") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.2)
    raise PlumblineError(f"The bot was not ready within {START_TIMEOUT:.0f} s: its log is above.")


async def _send(address: str, rate: float, seconds: float) -> Sent:
    sent = Sent()
    questions = itertools.cycle(load_workspace(SAMPLE_COMPANY / "plumbline.yaml").examples)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session, asyncio.TaskGroup() as group:
        started = time.monotonic()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
            event = (
                _mention(session, address, number, next(questions), sent)
                if number % 2
                else _alert(session, address, number // 2, sent)
            )
            group.create_task(event)
    return sent


async def _mention(session: aiohttp.ClientSession, address: str, number: int, question: str, sent: Sent) -> None:
    ts = f"{int(time.time())}.{number:06d}"
    event = {
        "type": "app_mention",
        "user": "U1",
        "text": f"<@U0BOT> {question}",
        "ts": ts,
        "event_ts": ts,
        "channel": CHANNEL,
    }
    body = json.dumps(
        {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": f"Ev{number}", "event": event}
    )
    timestamp = str(int(time.time()))
    signature = SignatureVerifier(SIGNING_SECRET).generate_signature(timestamp=timestamp, body=body) or ""
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": signature,
    }
    sent.mentions[ts] = time.monotonic()
    await _post(session, f"{address}slack/events", body, headers, sent)


async def _alert(session: aiohttp.ClientSession, address: str, number: int, sent: Sent) -> None:
    name = f"LoadTest{number // GROUP_SIZE:04d}"
    labels = {"alertname": name, "service": "booking-api", "severity": "warning", "instance": f"pod-{number}"}
    alert = {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": name},
        "startsAt": datetime.now(UTC).isoformat(),
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": f"{number:016x}",
    }
    payload = {
        "version": "4",
        "groupKey": name,
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "plumbline",
        "groupLabels": {"alertname": name},
        "commonLabels": labels,
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": [alert],
    }
    sent.groups.setdefault(name, time.monotonic())
    sent.alerts += 1
    await _post(
        session, f"{address}webhooks/alertmanager", json.dumps(payload), {"Content-Type": "application/json"}, sent
    )


async def _post(session: aiohttp.ClientSession, url: str, body: str, headers: dict[str, str], sent: Sent) -> None:
    started = time.monotonic()
    async with session.post(url, data=body, headers=headers) as response:
        await response.read()
        sent.refused += response.status >= 300
    sent.acknowledgements.append(time.monotonic() - started)


async def _settle(sent: Sent, received: Received) -> None:
    """Until every mention is answered and every group stands in the chat, and nothing is edited any more."""
    deadline = time.monotonic() + SETTLE_TIMEOUT
    seen = -1
    while time.monotonic() < deadline:
        complete = sent.mentions.keys() <= received.replies.keys() and len(received.roots) >= len(sent.groups)
        if complete and received.edits == seen:
            return
        seen = received.edits
        await asyncio.sleep(2.0)


async def _stored_alerts(folder: Path) -> int:
    engine = open_database(f"sqlite:///{folder / 'plumbline.sqlite'}")
    try:
        async with SqlStore(engine).transaction() as transaction:
            return sum(incident.alert_count for incident in await transaction.incidents.recent(100_000))
    finally:
        await engine.dispose()


def _figures(sent: Sent, received: Received, stored: int, rate: float, seconds: float) -> dict[str, Any]:
    roots = Counter(next((name for name in sent.groups if name in text), "?") for text, _ in received.roots)
    answered = {ts: received.replies.get(ts, []) for ts in sent.mentions}
    delays = [posts[0] - sent.mentions[ts] for ts, posts in answered.items() if posts]
    for text, at in received.roots:
        name = next((name for name in sent.groups if name in text), None)
        if name is not None:
            delays.append(at - sent.groups[name])
    return {
        "engine": "evidence",
        "rate": rate,
        "seconds": seconds,
        "sent": len(sent.mentions) + sent.alerts,
        "refused": sent.refused,
        "lost": sum(not posts for posts in answered.values())
        + sum(name not in roots for name in sent.groups)
        + max(0, sent.alerts - stored),
        "duplicated": sum(len(posts) > 1 for posts in answered.values())
        + sum(count > 1 for name, count in roots.items() if name != "?")
        + max(0, stored - sent.alerts),
        "ack_p50_ms": round(float(np.percentile(sent.acknowledgements, 50)) * 1000, 2),
        "ack_p99_ms": round(float(np.percentile(sent.acknowledgements, 99)) * 1000, 2),
        "post_p50_s": round(float(np.percentile(delays, 50)), 3) if delays else None,
        "post_p99_s": round(float(np.percentile(delays, 99)), 3) if delays else None,
    }
