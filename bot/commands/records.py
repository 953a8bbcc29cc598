"""The commands that need only the database: `plumbline status`, `dead-letters`, `postmortem` and `audit`."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adapters.clock import SystemClock
from adapters.store.database import migrate, open_database
from adapters.store.store import SqlStore
from bot.config.settings import Settings
from core import VERSION
from core.incidents.handover import closed_chats
from core.incidents.postmortem import as_markdown, draft_postmortem
from core.model.audit import PLUMBLINE, Act, AuditEntry, audit_entry, since
from core.model.errors import PlumblineError
from core.ports import Clock, DeadLetter, Store
from handlers.questions.redeliver import ask_to_redeliver, drop_dead_letter
from handlers.questions.show_home import MAX_READ, format_incidents, format_source

MAX_SHOWN = 200  # dead letters
PART = 500  # audit entries per read
NOTHING_READ = "No source was read yet. Run `plumbline ingest`."
NO_SUCH = "There is no dead letter {intent}. Run `plumbline dead-letters list` to list them."
_ENTRY = TypeAdapter(AuditEntry)


async def run_status(settings: Settings, out: Console) -> int:
    """Print the open incidents, and when each source was last read."""
    async with open_store(settings) as store, store.transaction() as transaction:
        opened = await transaction.incidents.latest_open(MAX_READ)
        ingestions = await transaction.ingestions.all()
        closed = closed_chats(await transaction.dead_letters.waiting())
    sources = [format_source(each) for each in ingestions] or [NOTHING_READ]
    out.print("\n".join([*format_incidents(opened), *sources, *closed]), highlight=False, markup=False, soft_wrap=True)
    return 0


async def run_list(settings: Settings, out: Console, *, as_json: bool) -> int:
    """Print dead letters, newest first."""
    async with open_store(settings) as store:
        _print(await _latest(store), out, as_json=as_json)
    return 0


async def run_retry(settings: Settings, intents: Sequence[str], out: Console, *, every: bool) -> int:
    """Ask the running bot to retry the given dead letters, or `every` one."""
    async with open_store(settings) as store:
        wanted = [letter.intent for letter in await _latest(store)] if every else intents
        for intent in wanted:
            if not await ask_to_redeliver(intent, store=store):
                raise PlumblineError(NO_SUCH.format(intent=intent))
            out.print(f"The running bot retries {intent}.", highlight=False, markup=False)
    return 0


async def run_drop(settings: Settings, intents: Sequence[str], out: Console) -> int:
    """Drop the given dead letters."""
    async with open_store(settings) as store:
        for intent in intents:
            if not await drop_dead_letter(intent, SystemClock().now(), store=store):
                raise PlumblineError(NO_SUCH.format(intent=intent))
            out.print(f"{intent} is dropped.", highlight=False, markup=False)
    return 0


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncGenerator[Store]:
    """Open the database of the workspace, for commands that need nothing else."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    engine = open_database(settings.database)
    try:
        await migrate(engine)
        yield SqlStore(engine)
    finally:
        await engine.dispose()


async def _latest(store: Store) -> list[DeadLetter]:
    async with store.transaction() as transaction:
        return await transaction.dead_letters.latest(MAX_SHOWN)


def _print(letters: Sequence[DeadLetter], out: Console, *, as_json: bool) -> None:
    rows = [
        {
            "intent": letter.intent,
            "place": f"{letter.place.platform} {letter.place.channel}",
            "reason": letter.reason,
            "at": letter.at.isoformat(timespec="seconds"),
        }
        for letter in letters
    ]
    if as_json:
        for row in rows:
            out.print(json.dumps(row), highlight=False, markup=False, soft_wrap=True)
        return
    if not rows:
        out.print("There are no dead letters. Every message was delivered.")
        return
    table = Table("intent", "place", "reason", "at")
    for row in rows:
        table.add_row(*row.values())
    out.print(table)


async def run_postmortem(settings: Settings, incident_id: str) -> int:
    """Print the draft to standard output. Raises PlumblineError for an unknown incident."""
    async with open_store(settings) as store, store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(f"There is no incident {incident_id}. The local page shows the ids of incidents.")
    sys.stdout.write(as_markdown(draft_postmortem(incident)))
    return 0


async def run_audit(settings: Settings, from_when: str, out: Console, *, as_json: bool) -> int:
    """Print the entries from a time on, oldest first; with `as_json`, one JSON object per line."""
    begin = since(from_when, SystemClock().now())
    async with open_store(settings) as store:
        async for entry in _entries(store, begin):
            if as_json:
                out.file.write(_ENTRY.dump_json(entry, ensure_ascii=True).decode() + "\n")
            else:
                out.print(Text(_line(entry)), soft_wrap=True)
    return 0


async def record_start(settings: Settings, replica: str, *, store: Store, clock: Clock) -> None:
    """Record the configuration that `replica` starts with: the SHA-256 of plumbline.yaml, as `sha256sum` prints it."""
    digest = hashlib.sha256(settings.config.read_bytes()).hexdigest() if settings.config else "no plumbline.yaml"
    entry = audit_entry(
        f"configured:{replica}",
        clock.now(),
        Act.CONFIGURED,
        PLUMBLINE,
        digest,
        detail=f"Plumbline {VERSION}",
    )
    async with store.transaction() as transaction:
        await transaction.audit.add(entry)


async def _entries(store: Store, begin: datetime) -> AsyncIterator[AuditEntry]:
    after = 0
    while True:
        async with store.transaction() as transaction:
            part = await transaction.audit.since(begin, after, PART)
        if not part:
            return
        for each in part:
            yield each.entry
        after = part[-1].number


def _line(entry: AuditEntry) -> str:
    parts = [f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.actor, entry.act, entry.detail, entry.subject]
    parts += [f"in {entry.place}"] if entry.place else []
    parts += [f"from {', '.join(entry.documents)}"] if entry.documents else []
    return "  ".join(part for part in parts if part)
