"""`eval load`: signed mentions and alerts at a steady rate against a bot of its own, and what became of each.

The bot is `plumbline serve` on the sample company in a process of its own; its Slack is a small server in this one
that notes every message. It is left alone first, until it has read, embedded and warmed up everything. Arrivals follow
the clock and not the answers, as they do in life. What was never answered took for ever: it counts in every percentile.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from rich.console import Console
from rich.table import Table

from adapters.store.database import open_database
from adapters.store.store import SqlStore
from bot.commands.demo import SAMPLE_COMPANY, free_port
from bot.config.workspace import load_workspace
from core.model.errors import PlumblineError
from tests.benchmarks.load_events import BOT_SECRETS, FiringAlert, Mention, events, roomy_company
from tests.benchmarks.machine import cpu_seconds, machine, rested
from tests.benchmarks.slack_memory import SlackMemory, remembering_slack

UNLIMITED = {"SLACK_POST_INTERVAL": "0"}  # what the bot can do is measured, not what a chat allows
SHARES = (50, 95, 99)  # percent
START_TIMEOUT = 180.0  # seconds until the bot must be ready
SETTLE_TIMEOUT = 120.0  # seconds after the last event until everything must stand in the chat


@dataclass(slots=True)
class Sent:
    """What was sent: idempotency key → time of sending, and how long each acknowledgement took."""

    mentions: dict[str, float] = field(default_factory=dict[str, float])
    groups: dict[str, float] = field(default_factory=dict[str, float])
    alerts: int = 0
    acknowledgements: list[float] = field(default_factory=list[float])
    refused: int = 0


async def run(rate: float, seconds: float) -> dict[str, Any]:
    """Send `rate` events a second for `seconds`, wait until the chat is quiet, and count."""
    with tempfile.TemporaryDirectory(prefix="plumbline-load-") as folder:
        async with remembering_slack() as (slack_url, memory), bot_process(Path(folder), slack_url) as bot:
            await rested(bot.pid)
            spent = cpu_seconds(bot.pid)
            sent = await _send(bot.address, rate, seconds)
            await _settle(sent, memory)
            spent = cpu_seconds(bot.pid) - spent
        stored = await _stored_alerts(Path(folder))
    events = len(sent.mentions) + sent.alerts
    figures = _figures(sent, memory, stored)
    return {
        "engine": "evidence",
        "machine": machine(),
        "rate": rate,
        "seconds": seconds,
        **figures,
        "cpu_ms_per_event": round(1000 * spent / events, 1),
    }


def print_table(figures: dict[str, Any], out: Console) -> None:
    table = Table("measure", "value")
    for name, value in figures.items():
        table.add_row(name, str(value))
    out.print(table)


@dataclass(frozen=True, slots=True)
class BotProcess:
    """A running bot: its address, and the number of its process."""

    address: str
    pid: int


@asynccontextmanager
async def bot_process(
    folder: Path, slack_url: str, limits: Mapping[str, str] = UNLIMITED
) -> AsyncGenerator[BotProcess]:
    """`plumbline serve` in a process of its own, ready to answer, in a chat that is as fast as the bot unless told."""
    port = free_port(0)
    environment = os.environ | {
        "PLUMBLINE_CONFIG": str(roomy_company(folder / "company")),
        "PLUMBLINE_DATA_DIR": str(folder),
        "PLUMBLINE_PORT": str(port),
        **BOT_SECRETS,
        "SLACK_API_URL": slack_url,
        **limits,
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
        for number, event in enumerate(itertools.islice(events(questions), int(rate * seconds))):
            match event:
                case Mention(ts=ts):
                    sent.mentions[ts] = time.monotonic()
                case FiringAlert(group=name):
                    sent.groups.setdefault(name, time.monotonic())
                    sent.alerts += 1
            group.create_task(_post(session, f"{address}{event.path}", event.body, event.headers, sent))
            await asyncio.sleep(max(0.0, started + (number + 1) / rate - time.monotonic()))
    return sent


async def _post(session: aiohttp.ClientSession, url: str, body: str, headers: dict[str, str], sent: Sent) -> None:
    started = time.monotonic()
    async with session.post(url, data=body, headers=headers) as response:
        await response.read()
        sent.refused += response.status >= 300
    sent.acknowledgements.append(time.monotonic() - started)


async def _settle(sent: Sent, memory: SlackMemory) -> None:
    """Until every mention is answered and every group stands in the chat, and nothing is edited any more."""
    deadline = time.monotonic() + SETTLE_TIMEOUT
    seen = -1
    while time.monotonic() < deadline:
        threads = {message.thread for message in memory.messages.values()}
        complete = sent.mentions.keys() <= threads and len(memory.roots()) >= len(sent.groups)
        if complete and memory.changes == seen:
            return
        seen = memory.changes
        await asyncio.sleep(2.0)


async def _stored_alerts(folder: Path) -> int:
    engine = open_database(f"sqlite:///{folder / 'plumbline.sqlite'}")
    try:
        async with SqlStore(engine).transaction() as transaction:
            return sum(incident.alert_count for incident in await transaction.incidents.recent(100_000))
    finally:
        await engine.dispose()


def _figures(sent: Sent, memory: SlackMemory, stored: int) -> dict[str, Any]:
    named = [(next((name for name in sent.groups if name in root.text), "?"), root) for root in memory.roots()]
    roots = Counter(name for name, _ in named)
    answered: dict[str, list[float]] = {ts: [] for ts in sent.mentions}
    for message in memory.messages.values():
        if message.thread in answered:
            answered[message.thread].append(message.posted_at)
    answers = [posts[0] - sent.mentions[ts] if posts else math.inf for ts, posts in answered.items()]
    posted_at = {name: root.posted_at for name, root in reversed(named)}  # the first root of each
    alerts = [posted_at.get(name, math.inf) - at for name, at in sent.groups.items()]
    return {
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
        **percentiles("answer", answers),
        **percentiles("alert", alerts),
    }


def percentiles(kind: str, delays: Sequence[float]) -> dict[str, float | str | None]:
    """The seconds within which half, 95 % and 99 % were posted: `never` if some of these were not."""
    if not delays:
        return {f"{kind}_p{share}_s": None for share in SHARES}
    seconds = np.percentile(delays, SHARES, method="higher")
    return {
        f"{kind}_p{share}_s": round(float(value), 3) if np.isfinite(value) else "never"
        for share, value in zip(SHARES, seconds, strict=True)
    }
