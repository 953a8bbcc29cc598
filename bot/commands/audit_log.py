"""`plumbline audit`: print the audit log, and record the start of a process in it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from datetime import datetime
from importlib.metadata import version

from pydantic import TypeAdapter
from rich.console import Console
from rich.text import Text

from adapters.clock import SystemClock
from adapters.store.database import migrate, open_database
from adapters.store.store import SqlStore
from bot.config.settings import Settings
from core.model.audit import PLUMBLINE, Act, AuditEntry, NumberedEntry, audit_entry, since
from core.ports import Clock, Store

PART = 500  # entries per read

_ENTRY = TypeAdapter(AuditEntry)


async def run_audit(settings: Settings, from_when: str, out: Console, *, as_json: bool) -> int:
    """Print the entries from a time on, oldest first; with `as_json`, one JSON object per line."""
    now = SystemClock().now()
    begin = since(from_when, now)
    engine = open_database(settings.database)
    try:
        await migrate(engine)
        async for entry in _entries(SqlStore(engine), begin):
            if as_json:
                out.file.write(_ENTRY.dump_json(entry, ensure_ascii=True).decode() + "\n")
            else:
                out.print(Text(_line(entry)), soft_wrap=True)
    finally:
        await engine.dispose()
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
        detail=f"Plumbline {version('plumbline')}",
    )
    async with store.transaction() as transaction:
        await transaction.audit.add(entry)


async def _entries(store: Store, begin: datetime) -> AsyncIterator[AuditEntry]:
    after = 0
    while part := await _part(store, begin, after):
        for each in part:
            yield each.entry
        after = part[-1].number


async def _part(store: Store, begin: datetime, after: int) -> list[NumberedEntry]:
    async with store.transaction() as transaction:
        return await transaction.audit.since(begin, after, PART)


def _line(entry: AuditEntry) -> str:
    parts = [f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.actor, entry.act, entry.detail, entry.subject]
    parts += [f"in {entry.place}"] if entry.place else []
    parts += [f"from {', '.join(entry.documents)}"] if entry.documents else []
    return "  ".join(part for part in parts if part)
