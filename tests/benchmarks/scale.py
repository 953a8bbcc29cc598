"""How long a page, a message and an alert take in a workspace with a long past.

    python -m tests.benchmarks scale [--incidents 100000] [--entries 1000000] [--json FILE]

The past is made up: incidents of half a year, of which a few are open, three predictions for each, of which a third were
judged, and entries of the audit log. The bot is `plumbline serve` on the sample company in a process of its own, left alone
until nothing is under way. Pages are fetched and messages answered one after the other, so the clock counts what one
person waits; the bot's CPU seconds are beside it, because other processes of a machine change only the former, and the
same of a bot that has no past.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from adapters.store.database import migrate, open_database, values_of
from adapters.store.tables import audit, incidents, outcomes, predictions
from core.model.alert import Severity
from core.model.audit import Act, audit_entry
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import MessageReference, Place, Placement, Platform
from core.model.incident import IncidentState
from tests.benchmarks.load import BotProcess, bot_process
from tests.benchmarks.load_events import FiringAlert, Mention, alert_of, mention
from tests.benchmarks.machine import cpu_seconds, machine, rested
from tests.benchmarks.slack_memory import SlackMemory, remembering_slack
from tests.fakes.door_secrets import KNOWN
from tests.fakes.incidents import bare_incident

PAST = timedelta(days=180)
OPEN = 40  # of the incidents
JUDGED = 3  # every third prediction
SERVICES = 50
KINDS = (PredictionKind.ANSWER, PredictionKind.OWNER, PredictionKind.CAUSE)
ROUNDS = 5  # that each page is fetched, and each message sent
ROWS = 20_000  # written at once
TIMEOUT = 120.0  # seconds for a page or a message
PAGES = ("", "incidents", "sources", "predictions", "predictions?outcome=open", "audit", "dead-letters", "metrics")
MESSAGES = {
    "question": "how do I roll back a canary?",
    "status": "status",
    "incidents": "incidents",
    "home": "home",
    "help": "help",
    "triage": "triage the checkout is slow and its pods restart",
    "rca": "rca checkout-api is slow",
}


def past(count: int, now: datetime) -> Iterator[dict[str, Any]]:
    """The rows of incidents, oldest first; the newest are open."""
    for number in range(count):
        opened = now - PAST * ((count - number) / count)
        is_open = number >= count - OPEN
        place = Place(Platform.SLACK, "C0PAST", f"{number}.1")
        incident = bare_incident(
            f"The latency of service-{number % SERVICES} is high",
            id=f"past-{number}",
            group_key=f"past-{number}",
            severity=Severity.WARNING,
            service=f"service-{number % SERVICES}",
            started_at=opened,
            opened_at=opened,
            updated_at=opened,
            state=IncidentState.OPEN if is_open else IncidentState.RESOLVED,
            resolved_at=None if is_open else opened + timedelta(hours=1),
            placement=Placement(place, message=MessageReference(place, f"{number}.1")),
        )
        yield {
            "id": incident.id,
            "source": incident.source,
            "group_key": incident.group_key,
            "state": incident.state,
            "revision": 1,
            "opened_at": opened,
            "platform": place.platform,
            "channel": place.channel,
            "message_id": place.thread,
            "service": incident.service,
            "leader": None,
            "body": incident,
            "changed_at": opened,
        }


def claims(count: int, now: datetime) -> Iterator[Prediction]:
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield Prediction(
            id=f"past:{number}",
            kind=kind,
            subject=f"past-{number // len(KINDS)}",
            value="payments",
            evaluation=Evaluation(0.7, 0.6),
            engine="evidence",
            estimator_version="past",
            made_at=now - PAST * ((count - number) / count),
            probability=0.5 + 0.4 * (number % 10) / 10,
        )


def entries(count: int, now: datetime) -> Iterator[dict[str, Any]]:
    for number in range(count):
        at = now - PAST * ((count - number) / count)
        yield values_of(audit_entry(f"past:{number}", at, Act.VIEWED, "slack:U1", f"past-{number}", documents=("a/b",)))


def labels(made: Iterable[Prediction]) -> Iterator[dict[str, Any]]:
    for number, prediction in enumerate(made):
        if number % JUDGED == number // len(KINDS) % JUDGED:
            yield values_of(Outcome(prediction.id, number % 10 < 8, "slack:U1", prediction.made_at))


def prediction_row(made: Prediction) -> dict[str, Any]:
    columns = ("id", "kind", "engine", "estimator_version", "made_at")
    return {name: getattr(made, name) for name in columns} | {"body": made}


async def fill(database: str, incident_count: int, entry_count: int) -> None:
    """Write the past into a new database, as a bot of long ago left it."""
    engine, now = open_database(database), datetime.now(UTC)
    claimed = len(KINDS) * incident_count
    await migrate(engine)
    try:
        for table, rows in (
            (incidents, past(incident_count, now)),
            (audit, entries(entry_count, now)),
            (predictions, map(prediction_row, claims(claimed, now))),
            (outcomes, labels(claims(claimed, now))),
        ):
            await _insert(engine, table, rows)
    finally:
        await engine.dispose()


async def _insert(engine: Any, table: sa.Table, rows: Iterator[dict[str, Any]]) -> None:
    while batch := [row for _, row in zip(range(ROWS), rows, strict=False)]:
        async with engine.begin() as connection:
            await connection.execute(table.insert(), batch)


async def measured(pid: int, act: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """Milliseconds of the first time, and the medians of the others, by the clock and of the bot's processor."""
    clock, cpu = list[float](), list[float]()
    for _ in range(ROUNDS + 1):
        started, spent = time.perf_counter(), cpu_seconds(pid)
        await act()
        clock.append(1000 * (time.perf_counter() - started))
        await asyncio.sleep(0.2)  # what is done after an answer counts, too
        cpu.append(1000 * (cpu_seconds(pid) - spent))
    first, *others = clock
    return {
        "first_ms": round(first),
        "p50_ms": round(statistics.median(others)),
        "cpu_p50_ms": round(statistics.median(cpu[1:])),
    }


class Visitor:
    """One person, who waits for each page and each message."""

    def __init__(self, bot: BotProcess, session: aiohttp.ClientSession, memory: SlackMemory) -> None:
        self._bot = bot
        self._session = session
        self._memory = memory
        self._number = 0

    async def fetch(self, path: str) -> None:
        async with self._session.get(f"{self._bot.address}{path}", headers=KNOWN) as response:
            await response.read()
            response.raise_for_status()

    async def say(self, text: str) -> None:
        self._number += 1
        event = mention(self._number, text)
        await self._send(event)
        await self._until(lambda: any(each.thread == event.ts for each in self._memory.messages.values()))

    async def fire(self) -> None:
        self._number += 1
        name = f"Scale{self._number:04d}"
        await self._send(alert_of(name, self._number))
        await self._until(lambda: any(name in each.text for each in self._memory.roots()))

    async def _send(self, event: Mention | FiringAlert) -> None:
        url = f"{self._bot.address}{event.path}"
        async with self._session.post(url, data=event.body, headers=event.headers) as response:
            response.raise_for_status()

    async def _until(self, stands: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT):
            while not stands():  # noqa: ASYNC110 -- polled, as a person looks
                await asyncio.sleep(0.002)


async def waited(folder: Path) -> dict[str, dict[str, float]]:
    """What each page, message and alert takes of a bot on the database in this folder."""
    results: dict[str, dict[str, float]] = {}
    async with (
        remembering_slack() as (slack_url, memory),
        bot_process(folder, slack_url) as bot,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session,
    ):
        await rested(bot.pid)
        visitor = Visitor(bot, session, memory)
        for page in PAGES:
            results[f"/{page}"] = await measured(bot.pid, lambda page=page: visitor.fetch(page))
        for kind, text in MESSAGES.items():
            results[kind] = await measured(bot.pid, lambda text=text: visitor.say(text))
        results["alert"] = await measured(bot.pid, visitor.fire)
    return results


async def run(incident_count: int, entry_count: int, kept: Path | None) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="plumbline-scale-") as empty,
        tempfile.TemporaryDirectory(prefix="plumbline-scale-") as name,
    ):
        folder = Path(name)
        database = (kept or folder) / "plumbline.sqlite"
        if not database.exists():
            await fill(f"sqlite:///{database}", incident_count, entry_count)
        if kept is not None:
            await asyncio.to_thread(shutil.copy, database, folder)
        before, results = await waited(Path(empty)), await waited(folder)
    for what, row in results.items():
        row["empty_cpu_p50_ms"] = before[what]["cpu_p50_ms"]
        row["times"] = round(
            row["cpu_p50_ms"] / max(10.0, row["empty_cpu_p50_ms"]), 1
        )  # a processor's clock ticks each 10 ms
    return {
        "measure": "a long past",
        "engine": "evidence",
        "machine": machine(),
        "incidents": incident_count,
        "predictions": len(KINDS) * incident_count,
        "entries": entry_count,
        "results": results,
        "slowest_ms": max(row["p50_ms"] for row in results.values()),
        "most_cpu_ms": max(row["cpu_p50_ms"] for row in results.values()),
        "most_times": max(row["times"] for row in results.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--incidents", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="Where the past is kept; one that already exists is used.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments.incidents, arguments.entries, arguments.folder))
    table = Table("what a person waits for", "first, ms", "p50, ms", "CPU, ms", "CPU without a past, ms", "times")
    for name, row in figures["results"].items():
        table.add_row(name, *map(str, row.values()))
    Console(width=120).print(table, {key: value for key, value in figures.items() if key != "results"})
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
