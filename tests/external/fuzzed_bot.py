"""The whole bot on a thread of its own, without the work that follows: what it accepts stays in its database."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import structlog
from pydantic import TypeAdapter

from bot import server
from bot.web import routes
from core.model.incident import Incident
from tests.scenario.application import TOKEN, running_bot

JSON = "application/json"
TIMEOUT = 60.0  # seconds for the bot to start, or to answer a request
MANY = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_refusal(self) -> bool:
        return 400 <= self.status < 500


class Complaints(logging.Handler):
    """Tracebacks and errors in the logs of libraries."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(self.format(record))


@dataclass
class FuzzedBot:
    """`database` is the bot's own; `complaints` what its logs held since they were looked at."""

    address: str
    database: sqlite3.Connection
    libraries: Complaints
    errors: list[str]
    connection: http.client.HTTPConnection = field(init=False)
    checks: int = 0  # answers that were looked at
    _seen: int = 0

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """A request, on a connection that is kept as long as the bot keeps it."""
        try:
            return self._send(method, path, body, headers or {})
        except (http.client.RemoteDisconnected, ConnectionError):
            self.connection.close()
            return self._send(method, path, body, headers or {})

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.connection.request(method, path, body, dict(headers))
        response = self.connection.getresponse()
        return Answer(response.status, dict(response.headers), response.read())

    def checked(self, answer: Answer) -> Answer:
        """Raises AssertionError unless the bot did what it promises of anything that comes in."""
        self.checks += 1
        complaints = "\n".join([*self.libraries.heard, *self.errors])
        self.errors.clear()
        self.libraries.heard.clear()
        assert answer.status < 500, f"{answer.status} {answer.body[:500]!r} {complaints}"
        assert complaints == ""
        if answer.is_refusal and answer.body and answer.headers.get("Content-Type", "").startswith(JSON):
            sentence = json.loads(answer.body)["error"]
            assert sentence[-1] in ".?"
            assert len(sentence) < 1_000
        changed = self._has_changed()
        assert not (answer.is_refusal and changed), "a refused request left something in the database"
        if answer.status == 202 and (incident_id := json.loads(answer.body)["incident"]) is not None:
            self.check_incident(incident_id)
        return answer

    def check_incident(self, incident_id: str) -> None:
        """It can be read back, and somebody will work on it."""
        ((body,),) = self.database.execute("SELECT body FROM incidents WHERE id = ?", (incident_id,)).fetchall()
        incident: Incident = TypeAdapter(Incident).validate_json(body)
        assert incident.id == incident_id
        assert incident.alerts
        asked_for = self.database.execute("SELECT workflow FROM tasks WHERE subject = ?", (incident_id,)).fetchall()
        assert asked_for, "an incident that nobody will ever hear of"

    def _has_changed(self) -> bool:
        """Whether there is a task or an incident more than before."""
        (written,) = self.database.execute(
            "SELECT (SELECT coalesce(max(number), 0) FROM tasks) + (SELECT count(*) FROM incidents)"
        ).fetchone()
        before, self._seen = self._seen, written
        return written != before


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What the bot itself logs as an error, with its traceback."""
    errors: list[str] = []

    def hear(_logger: object, level: str, event: structlog.typing.EventDict) -> str:
        if level in {"error", "critical", "exception"}:
            errors.append(" ".join(map(str, event.values())))
        raise structlog.DropEvent

    before = structlog.get_config()["processors"]
    structlog.configure(processors=[structlog.processors.format_exc_info, hear])
    yield errors
    structlog.configure(processors=before)


@contextmanager
def fuzzed_bot(folder: Path) -> Iterator[FuzzedBot]:
    started, stop = threading.Event(), threading.Event()
    found: list[str] = []
    failures: list[BaseException] = []

    async def serve() -> None:
        async with running_bot(folder) as bot:
            found.append(bot.address)
            started.set()
            await asyncio.to_thread(stop.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 -- handed to the thread that waits
            failures.append(error)
            started.set()

    async def nothing(*_: object) -> None: ...

    libraries = Complaints()
    with (
        _overheard() as errors,
        patch.object(server, "_start_background", nothing),
        patch.object(routes, "DELIVERIES", MANY),
        patch.object(routes, "REFUSED_BURST", MANY),
    ):
        thread = threading.Thread(target=run)
        thread.start()
        assert started.wait(TIMEOUT)
        try:
            if failures:
                raise failures[0]
            database = sqlite3.connect(folder / "data" / "plumbline.sqlite", isolation_level=None)
            logging.getLogger().addHandler(libraries)
            errors.clear()
            bot = FuzzedBot(found[0], database, libraries, errors)
            bot._has_changed()
            yield bot
            bot.connection.close()
            database.close()
        finally:
            logging.getLogger().removeHandler(libraries)
            stop.set()
            thread.join(TIMEOUT)


AUTHORISED = {"Authorization": f"Bearer {TOKEN}", "HX-Request": "true"}
