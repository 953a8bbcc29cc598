"""`fairness`: one member floods incidents' threads with remarks; how long do others wait for answers and new alerts?

Paired: the same questions and alerts in the same bot, first without the flood, then with it. The bot is `plumbline
serve` on the sample company in a process of its own, with a log of many lines as a tool; its Slack is a server in this
process. Latency is measured from sending to the message that the others see.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from bot.commands.demo import SAMPLE_COMPANY
from core.model.errors import PlumblineError
from tests.benchmarks.load import UNLIMITED, bot_process
from tests.benchmarks.load_events import alert_of, mention, signed
from tests.benchmarks.slack_memory import SlackMemory, remembering_slack

INCIDENTS = 6  # whose threads are flooded together, beside one that is flooded alone
PROBES = 5  # questions of another member, and as many new alerts
INTERVAL = 2.0  # seconds between two probes
PATIENCE = 240.0  # seconds until a probe must be seen
LEVELS = ("INFO", "INFO", "INFO", "WARN", "ERROR")
LOGGED = timedelta(hours=3)  # time that the log covers
QUESTION = "How do I roll back a canary?"


async def run(lines: int, remarks: int) -> dict[str, Any]:
    """Return how long others wait without and with the flood, in seconds."""
    with tempfile.TemporaryDirectory(prefix="plumbline-fairness-") as name:
        workspace = Path(name) / "workspace"
        shutil.copytree(SAMPLE_COMPANY, workspace, ignore=shutil.ignore_patterns("live", "__pycache__"))
        _write_log(workspace / "live" / "logs" / "booking-api.log", lines)
        limits = {**UNLIMITED, "PLUMBLINE_CONFIG": str(workspace / "plumbline.yaml")}
        async with (
            remembering_slack() as (url, memory),
            bot_process(Path(name), url, limits) as bot,
            aiohttp.ClientSession(bot.address) as session,
        ):
            probe = _Probe(session, memory)
            roots = [await probe.alert(f"Flooded{number}") for number in range(INCIDENTS + 1)]
            await asyncio.sleep(3 * INTERVAL)
            figures: dict[str, Any] = {"log_lines": lines, "remarks": 2 * remarks}
            figures |= await _measured(probe, "calm")
            places = [*itertools.repeat(roots[0], remarks), *itertools.islice(itertools.cycle(roots[1:]), remarks)]
            await asyncio.gather(*(probe.remark(place, number) for number, (_, place) in enumerate(places)))
            return figures | await _measured(probe, "flood")


def print_table(figures: dict[str, Any], out: Console) -> None:
    out.print(f"{figures['remarks']} remarks of one member, log of {figures['log_lines']} lines", highlight=False)
    table = Table("seconds", "median without", "worst without", "median with", "worst with")
    for kind in ("question", "alert"):
        shown = [f"{figures[f'{phase}_{kind}_{name}']:.2f}" for phase in ("calm", "flood") for name in ("p50", "max")]
        table.add_row(f"{kind}s of others", *shown)
    out.print(table)


async def _measured(probe: _Probe, phase: str) -> dict[str, float]:
    """Send questions and alerts in turn, and return their latencies."""
    waits: dict[str, list[asyncio.Task[float]]] = {"question": [], "alert": []}
    async with asyncio.TaskGroup() as group:
        for number in range(PROBES):
            waits["question"].append(group.create_task(probe.question()))
            waits["alert"].append(group.create_task(probe.latency(f"{phase.title()}{number}")))
            await asyncio.sleep(INTERVAL)
    seconds = {kind: [each.result() for each in tasks] for kind, tasks in waits.items()}
    return {
        f"{phase}_{kind}_{name}": round(figure(values), 2)
        for kind, values in seconds.items()
        for name, figure in (("p50", median), ("max", max))
    }


class _Probe:
    """Those who wait: they send something, and look when it is shown."""

    def __init__(self, session: aiohttp.ClientSession, memory: SlackMemory) -> None:
        self._session = session
        self._memory = memory
        self._numbers = itertools.count()

    async def alert(self, name: str) -> tuple[float, str]:
        """Return the seconds until an alert is shown, and the id of its message."""
        event = alert_of(name, next(self._numbers))
        began = await self._send(event.path, event.body, event.headers)
        ts = await self._seen(lambda: (each.ts for each in self._memory.roots() if name in each.text))
        return self._memory.messages[ts].posted_at - began, ts

    async def latency(self, name: str) -> float:
        return (await self.alert(name))[0]

    async def question(self) -> float:
        """Return the seconds until another member's question has an answer."""
        event = mention(next(self._numbers), QUESTION)
        began = await self._send(event.path, event.body, event.headers)
        ts = await self._seen(lambda: (each.ts for each in self._memory.replies(event.ts)))
        return self._memory.messages[ts].posted_at - began

    async def remark(self, thread: str, number: int) -> None:
        """Say something about the cause in an incident's thread."""
        ts = f"{int(time.time())}.9{number:05d}"
        text = f"<@U0BOT> I think the cause is the connection pool of pg-booking, try {number}"
        event = {"type": "app_mention", "user": "U9", "text": text, "ts": ts, "event_ts": ts, "channel": "C0INC"}
        body = json.dumps(
            {
                "type": "event_callback",
                "team_id": "T1",
                "api_app_id": "A1",
                "event_id": f"EvFlood{number}",
                "event": {**event, "thread_ts": thread},
            }
        )
        await self._send("slack/events", body, signed(body))

    async def _send(self, path: str, body: str, headers: dict[str, str]) -> float:
        began = time.monotonic()
        async with self._session.post(f"/{path}", data=body, headers=headers) as response:
            if response.status >= 300:
                raise PlumblineError(f"{path} answered {response.status}: {await response.text()}")
        return began

    async def _seen(self, shown: Callable[[], Iterator[str]]) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if ts := next(shown(), None):
                return ts
            await asyncio.sleep(0.02)
        raise PlumblineError(f"Nothing was shown within {PATIENCE:.0f} s.")


def _write_log(file: Path, lines: int) -> None:
    """Write a log whose lines lie evenly over the hours before now."""
    file.parent.mkdir(parents=True)
    draw, began, step = random.Random(7), datetime.now(UTC) - LOGGED, LOGGED / lines
    with file.open("w", encoding="utf-8") as log:
        for number in range(lines):
            at = (began + number * step).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            took, level = draw.randrange(4_000), draw.choice(LEVELS)
            message = "connection to pg-booking timed out" if level == "ERROR" else "booking stored"
            log.write(f"{at} {level} booking-api {message} request={draw.randrange(10**9):09d} took={took}ms\n")
