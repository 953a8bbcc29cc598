"""`eval load --storm`: thousands of alerts within a minute, in a Slack that takes one message a second and channel.

Every alert is a request of its own, which is harder than what Alertmanager does. Most belong to one group, the others to
many. The Slack refuses what comes too early, and at random some of what does not.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from adapters.store.database import open_database
from adapters.store.store import SqlStore
from core.model.incident import Stage
from tests.benchmarks.load import BotProcess, bot_process
from tests.benchmarks.load_events import FiringAlert, alert_of
from tests.benchmarks.slack_memory import SlackMemory, remembering_slack

POST_INTERVAL = 1.0  # seconds between messages in a channel
EDITS_PER_MINUTE = 50
REFUSED = 0.02  # share of the posts and edits that are refused although they are in time
PAUSE = 2  # seconds for which such a refusal asks
SAMPLING = 0.5  # seconds between looks at the memory
QUIET = 10.0  # seconds without a change after which the chat is believed to be at rest
WARM_UP = "WarmUp"
STORM_GROUP = "Storm"


@dataclass(slots=True)
class StrictSlack:
    """Refuses what comes too early (`early`), and some of the rest (`injected`)."""

    chance: random.Random
    early: int = 0
    injected: int = 0
    _posted: dict[str, float] = field(default_factory=dict[str, float])
    _edited: list[float] = field(default_factory=list[float])

    def __call__(self, method: str, channel: str) -> int:
        now = time.monotonic()
        if method not in ("chat.postMessage", "chat.update"):
            return 0
        if self._is_early(method, channel, now):
            self.early += 1
            return 1
        if self.chance.random() < REFUSED:
            self.injected += 1
            return PAUSE
        if method == "chat.postMessage":
            self._posted[channel] = now
        else:
            self._edited.append(now)
        return 0

    def _is_early(self, method: str, channel: str, now: float) -> bool:
        if method == "chat.postMessage":
            return now - self._posted.get(channel, -POST_INTERVAL) < POST_INTERVAL
        self._edited = [at for at in self._edited if now - at < 60]
        return len(self._edited) >= EDITS_PER_MINUTE


async def run(alerts: int, groups: int, others: int, seconds: float, patience: float, seed: int = 0) -> dict[str, Any]:
    """Send `alerts` of one group and `others` of `groups` more over `seconds`, and wait at most `patience` seconds."""
    slack = StrictSlack(random.Random(seed))
    with tempfile.TemporaryDirectory(prefix="plumbline-storm-") as folder:
        async with remembering_slack(slack) as (slack_url, memory), bot_process(Path(folder), slack_url, {}) as bot:
            await _warm_up(bot, memory)
            gauge = _MemoryGauge(bot.pid)
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(gauge.watch())
                sent = await _send(bot.address, _mixed(alerts, groups, others, seed), seconds)
                settled = await _settle(memory, groups + 2, patience)
                watching.cancel()
        stored = await _stored(Path(folder))
    roots = Counter(_named(message.text, groups) for message in memory.roots())
    wanted = {STORM_GROUP, *(_name(number) for number in range(groups))}
    return {
        "sent": len(sent.acknowledgements),
        "refused": sent.refused,
        "lost": sum(name not in roots for name in wanted) + max(0, alerts + others - stored.alerts),
        "duplicated": sum(count > 1 for count in roots.values()) + max(0, stored.alerts - alerts - others),
        "unfinished": stored.unfinished,
        "groups": len(wanted),
        "messages": sum(roots[name] for name in wanted),
        "too_early": slack.early,
        "injected_429": slack.injected,
        "sending_s": round(sent.seconds, 1),
        "settled_s": settled,
        "ack_p50_ms": round(float(np.percentile(sent.acknowledgements, 50)) * 1000, 2),
        "ack_p99_ms": round(float(np.percentile(sent.acknowledgements, 99)) * 1000, 2),
        "ack_max_ms": round(max(sent.acknowledgements) * 1000, 2),
        "memory_before_mb": round(gauge.first, 1),
        "memory_growth_mb": round(gauge.highest - gauge.first, 1),
    }


@dataclass(slots=True)
class _Sent:
    acknowledgements: list[float] = field(default_factory=list[float])  # seconds
    refused: int = 0
    seconds: float = 0.0


class _MemoryGauge:
    """How much memory a process has resident, in MB, since it was first looked at."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self.first = self.highest = self._read()

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(SAMPLING)
            self.highest = max(self.highest, self._read())

    def _read(self) -> float:
        line = next(line for line in self._status.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024 / 1e6


def _name(number: int) -> str:
    return f"Group{number:04d}"


def _named(text: str, groups: int) -> str:
    """The group that a message is about."""
    names = (STORM_GROUP, WARM_UP, *(_name(number) for number in range(groups)))
    return next((name for name in names if name in text), "?")


def _mixed(alerts: int, groups: int, others: int, seed: int) -> list[str]:
    """The group of each alert, in the order in which they are sent."""
    mixed = [STORM_GROUP] * alerts + [_name(number % groups) for number in range(others)]
    random.Random(seed).shuffle(mixed)
    return mixed


async def _warm_up(bot: BotProcess, memory: SlackMemory) -> None:
    """One incident from beginning to end: what is only loaded once is no growth."""
    await _send(bot.address, [WARM_UP], 0)
    await _settle(memory, 1, 120)


async def _send(address: str, names: Sequence[str], seconds: float) -> _Sent:
    sent = _Sent()
    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=256)
    started = time.monotonic()

    async def post(session: aiohttp.ClientSession, event: FiringAlert) -> None:
        begun = time.monotonic()
        async with session.post(f"{address}{event.path}", data=event.body, headers=event.headers) as response:
            await response.read()
            sent.refused += response.status >= 300
        sent.acknowledgements.append(time.monotonic() - begun)

    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
        asyncio.TaskGroup() as requests,
    ):
        for number, name in enumerate(names):
            requests.create_task(post(session, alert_of(name, number)))
            await asyncio.sleep(max(0.0, started + (number + 1) * seconds / len(names) - time.monotonic()))
    sent.seconds = time.monotonic() - started
    return sent


async def _settle(memory: SlackMemory, roots: int, patience: float) -> float | None:
    """Seconds until so many messages stood in the chat and none changed any more; None if that took too long."""
    started = changed = time.monotonic()
    seen = memory.changes
    while (now := time.monotonic()) - started < patience:
        if memory.changes != seen:
            seen, changed = memory.changes, now
        if len(memory.roots()) >= roots and now - changed > QUIET:
            return round(changed - started, 1)
        await asyncio.sleep(SAMPLING)
    return None


@dataclass(frozen=True, slots=True)
class _Stored:
    alerts: int
    unfinished: int


async def _stored(folder: Path) -> _Stored:
    engine = open_database(f"sqlite:///{folder / 'plumbline.sqlite'}")
    try:
        async with SqlStore(engine).transaction() as transaction:
            incidents = [each for each in await transaction.incidents.recent(100_000) if each.title != WARM_UP]
    finally:
        await engine.dispose()
    return _Stored(
        sum(incident.alert_count for incident in incidents),
        sum(incident.stage is not Stage.DONE and incident.part_of is None for incident in incidents),
    )
