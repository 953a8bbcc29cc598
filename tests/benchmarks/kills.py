"""`eval load --kill N`: kill -9 of a replica at random moments of a storm, and what became of each event.

Each replica is the real bot in a process of its own, forked from one that has imported everything, so that a life takes
a second to begin. Events come as from senders that try again until they are acknowledged, at whatever replica answers.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from adapters.slack.render import render
from adapters.store.database import open_database
from adapters.store.store import SqlStore
from bot.commands.demo import SAMPLE_COMPANY, free_port
from bot.config.settings import Settings, load_settings
from bot.config.workspace import load_workspace
from bot.telemetry import configure_logging
from bot.wiring.application import ingest, open_core
from core.model.errors import PlumblineError, StoreUnavailable
from core.model.incident import Incident, Stage
from core.model.messages import IncidentMessage
from tests.benchmarks.load_events import BOT_SECRETS, FiringAlert, Mention, events, roomy_company
from tests.benchmarks.slack_memory import SlackMemory, remembering_slack

TIMEOUT = 120.0  # seconds until a replica must answer, and after the last kill until everything must stand in the chat
ATTEMPTS = 20  # to read the database
AGAIN = 0.1  # seconds until a sender that was not acknowledged tries again
LONGEST_LIFE = 1.5  # seconds that a replica works at most, once it answers, before the next kill

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "tests.benchmarks.kills",
        "bot.server",
        "adapters.qdrant_edge",
        "adapters.slack.inbound",
        "adapters.slack.messenger",
        "adapters.teams.inbound",
        "adapters.teams.messenger",
        "aiosqlite",
    ]
)


class Life:
    """A replica: one process after the other at the same address, each killed in the end."""

    def __init__(self, folder: Path, slack_url: str, database_url: str) -> None:
        self.address = f"http://127.0.0.1:{(port := free_port(0))}/"
        self.log = folder / "log"
        self._environment = {
            "PLUMBLINE_CONFIG": str(roomy_company(folder / "company")),
            "PLUMBLINE_DATA_DIR": str(folder),
            "PLUMBLINE_DATABASE_URL": database_url,
            "PLUMBLINE_PORT": str(port),
            **BOT_SECRETS,
            "SLACK_API_URL": slack_url,
            "SLACK_POST_INTERVAL": "0",
        }
        self._process: Any = None

    def begin(self) -> None:
        self._process = _processes.Process(target=_live, args=(self._environment, self.log))
        self._process.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    async def answers(self, session: aiohttp.ClientSession) -> None:
        """Wait until it does. Raises PlumblineError if it died by itself, or is silent."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline and self._process.is_alive():
            try:
                async with session.get(f"{self.address}healthz"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.02)
        log = await asyncio.to_thread(self.log.read_text, errors="replace")
        raise PlumblineError(f"A replica does not answer; its log ends with: {log[-2000:]}")


def _live(environment: dict[str, str], log: Path) -> None:
    from bot.server import serve

    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    configure_logging("console")

    async def life() -> None:
        settings = load_settings()
        async with open_core(settings, load_workspace(settings.config)) as core:
            await serve(core, lambda _: None)

    asyncio.run(life())


@dataclass(slots=True)
class Accepted:
    """What was acknowledged: the threads of mentions, and how many alerts of each group. `attempts` are requests."""

    mentions: list[str] = field(default_factory=list[str])
    groups: dict[str, int] = field(default_factory=dict[str, int])
    sent: dict[str, int] = field(default_factory=dict[str, int])  # the same, with those that nobody acknowledged
    attempts: int = 0


async def run(kills: int, replicas: int, database_url: str, rate: float, seed: int) -> dict[str, Any]:
    """Kill one of the replicas `kills` times while `rate` events a second arrive; wait for the end, and count."""
    chance, accepted = random.Random(seed), Accepted()
    with tempfile.TemporaryDirectory(prefix="plumbline-kills-") as folder:
        async with remembering_slack() as (slack_url, memory):
            async with _fleet(Path(folder), slack_url, database_url, replicas) as fleet:
                async with aiohttp.ClientSession() as session:
                    storm = asyncio.create_task(_storm(session, fleet, accepted, rate, chance))
                    await _kill(session, fleet, kills, chance)
                    storm.cancel()
                    await asyncio.gather(storm, return_exceptions=True)
                address = database_url or f"sqlite:///{fleet[0].log.parent / 'plumbline.sqlite'}"
                settled_in = await _settle(address, memory, accepted)
                incidents = await _incidents(address)
            errors = sum(_errors(life.log) for life in fleet)
    return {
        "database": "postgresql" if database_url else "sqlite",
        "replicas": replicas,
        "kills": kills,
        "accepted": len(accepted.mentions) + sum(accepted.groups.values()),
        "attempts": accepted.attempts,
        **_judge(memory, accepted, incidents),
        "errors_logged": errors,
        "settled_in_s": round(settled_in, 1),
    }


@asynccontextmanager
async def _fleet(folder: Path, slack_url: str, database_url: str, replicas: int) -> AsyncGenerator[list[Life]]:
    furnished = folder / "furnished"
    settings = Settings.model_validate(
        {"PLUMBLINE_CONFIG": SAMPLE_COMPANY / "plumbline.yaml", "PLUMBLINE_DATA_DIR": furnished}
    )
    async with open_core(settings, load_workspace(settings.config)) as core:
        await ingest(core)
    fleet: list[Life] = []
    try:
        for number in range(replicas):
            home = folder / f"replica-{number}"
            await asyncio.to_thread(shutil.copytree, furnished, home)
            fleet.append(Life(home, slack_url, database_url))
            fleet[-1].begin()
        yield fleet
    finally:
        for life in fleet:
            life.kill()


async def _kill(session: aiohttp.ClientSession, fleet: list[Life], kills: int, chance: random.Random) -> None:
    """Each time a replica that answers, a random while after it began to or after the last kill."""
    await asyncio.gather(*(life.answers(session) for life in fleet))
    for _ in range(kills):
        life = chance.choice(fleet)
        await life.answers(session)
        await asyncio.sleep(chance.uniform(0, LONGEST_LIFE))
        await asyncio.to_thread(life.kill)
        life.begin()
    await asyncio.gather(*(life.answers(session) for life in fleet))


async def _storm(
    session: aiohttp.ClientSession, fleet: list[Life], accepted: Accepted, rate: float, chance: random.Random
) -> None:
    """Events until cancelled; those under way are sent to their end."""
    questions = itertools.cycle(load_workspace(SAMPLE_COMPANY / "plumbline.yaml").examples)
    sending: set[asyncio.Task[None]] = set()
    try:
        for event in events(questions):
            task = asyncio.create_task(_deliver(session, fleet, event, accepted, chance))
            sending.add(task)
            task.add_done_callback(sending.discard)
            await asyncio.sleep(1 / rate)
    finally:
        await asyncio.gather(*sending)


async def _deliver(
    session: aiohttp.ClientSession,
    fleet: list[Life],
    event: Mention | FiringAlert,
    accepted: Accepted,
    chance: random.Random,
) -> None:
    """As a chat and an alerting system do: again and again, until somebody has acknowledged it, or patience is over."""
    deadline = time.monotonic() + TIMEOUT
    if isinstance(event, FiringAlert):
        accepted.sent[event.group] = accepted.sent.get(event.group, 0) + 1
    while True:
        if time.monotonic() > deadline:
            return
        accepted.attempts += 1
        address = chance.choice(fleet).address
        try:
            async with session.post(f"{address}{event.path}", data=event.body, headers=event.headers) as response:
                await response.read()
                if response.status < 300:
                    break
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(AGAIN)
    if isinstance(event, Mention):
        accepted.mentions.append(event.ts)
    else:
        accepted.groups[event.group] = accepted.groups.get(event.group, 0) + 1


async def _settle(database: str, memory: SlackMemory, accepted: Accepted) -> float:
    """Until all that was accepted stands in the chat, or nothing is said for too long; the seconds it took."""
    began = changed = time.monotonic()
    seen = -1
    while time.monotonic() < changed + TIMEOUT:
        if memory.changes != seen:
            seen, changed = memory.changes, time.monotonic()
        elif not any(_judge(memory, accepted, await _incidents(database)).values()):
            break
        await asyncio.sleep(2.0)
    return time.monotonic() - began


async def _incidents(database: str) -> list[Incident]:
    engine = open_database(database)
    try:
        for _ in range(ATTEMPTS):  # the database drops our connection as well
            with suppress(StoreUnavailable):
                async with SqlStore(engine).transaction() as transaction:
                    return await transaction.incidents.recent(100_000)
            await asyncio.sleep(0.5)
    finally:
        await engine.dispose()
    raise AssertionError("The database cannot be read any more.")


def _judge(memory: SlackMemory, accepted: Accepted, incidents: list[Incident]) -> dict[str, int]:
    """What is missing, what is there twice, and which incidents do not show in the chat what is known of them."""
    answers = [len(memory.replies(ts)) for ts in accepted.mentions]
    of_group = {name: [each for each in incidents if each.group_key == name] for name in accepted.groups}
    stored = {name: sum(each.alert_count for each in incidents) for name, incidents in of_group.items()}
    missing = sum(max(0, count - stored[name]) for name, count in accepted.groups.items())
    too_many = sum(max(0, stored[name] - accepted.sent[name]) for name in accepted.groups)
    posts = Counter(message.intent for message in memory.messages.values())
    return {
        "lost": sum(count == 0 for count in answers) + missing,
        "duplicated": sum(count > 1 for count in answers) + too_many + sum(count - 1 for count in posts.values()),
        "unfinished": sum(not _is_told_whole(memory, incident) for incident in incidents),
    }


def _is_told_whole(memory: SlackMemory, incident: Incident) -> bool:
    """Whether its message shows all that is known, and its details stand in the thread once."""
    root = memory.messages.get(incident.placement.message.message_id) if incident.placement.message else None
    if incident.stage is not Stage.DONE or root is None:
        return False
    has_details = any(reply.intent == f"details:{incident.id}" for reply in memory.replies(root.ts))
    return has_details and root.text == render(IncidentMessage(incident)).text


def _errors(log: Path) -> int:
    return sum("[error" in line for line in log.read_text(errors="replace").splitlines())
