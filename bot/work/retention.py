"""The nightly retention policy, and the command that deletes the data of a person or a thread."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from dbos import DBOS
from rich.console import Console
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.clock import SystemClock
from adapters.store import forgetting, retention
from adapters.store.database import migrate, open_database, truncate_log
from adapters.store.store import SqlStore
from bot.config.section import RetentionSection
from bot.config.settings import Settings
from bot.work import engine as workflow_engine
from core.model.audit import PLUMBLINE, Act, audit_entry
from core.ports import Clock, Store


async def apply_retention(policy: RetentionSection, engine: AsyncEngine, store: Store, clock: Clock) -> None:
    """Delete what exceeds the retention periods, and record the counts in the audit log. Raises StoreUnavailable."""
    now = clock.now()
    kept = {kind: days for kind, days in policy.model_dump().items() if days is not None}
    deleted = await retention.delete_before(engine, {kind: now - timedelta(days=days) for kind, days in kept.items()})
    deleted["workflows"] = await workflow_engine.forget_before(now - timedelta(days=policy.events))
    counts = ", ".join(f"{kind} {count}" for kind, count in deleted.items() if count) or "nothing"
    await _note(store, now, f"retained:{now:%Y-%m-%dT%H:%M}", "retention", counts)


async def run_forget(settings: Settings, person: str, thread: str, out: Console) -> int:
    """Delete the messages of a person or a thread, even while the bot runs."""
    engine = open_database(settings.database)
    try:
        await migrate(engine)
        forgotten = await forgetting.forget(
            engine,
            person=person,
            thread=thread,
            forget_workflows=lambda keys: asyncio.to_thread(forget_workflows, settings.workflow_database, keys),
        )
        now = SystemClock().now()  # the audit log does not say whose data was deleted
        key = f"forgotten:{now:%Y-%m-%dT%H:%M:%S.%f}"
        await _note(SqlStore(engine), now, key, "forget", f"events {len(forgotten)}")
        for database in (settings.database, settings.workflow_database):
            await asyncio.to_thread(truncate_log, database)
    finally:
        await engine.dispose()
    out.print(
        f"{len(forgotten)} events were deleted. Plumbline does not delete messages in the chat itself, in sources or "
        "in backups.",
        highlight=False,
    )
    return 0


def forget_workflows(database_url: str, keys: list[str]) -> None:
    """Delete the engine's data of these workflows, even while the bot runs."""
    if not keys:
        return
    DBOS.migrate(database_url)  # a restored workspace may lack the tables
    with workflow_engine.client(database_url) as client:
        for start in range(0, len(keys), retention.BATCH):  # statements have a limited number of parameters
            client.delete_workflows(keys[start : start + retention.BATCH])


async def _note(store: Store, now: datetime, key: str, subject: str, detail: str) -> None:
    """Record in the audit log that data was deleted."""
    async with store.transaction() as transaction:
        await transaction.audit.add(audit_entry(key, now, Act.RETAINED, PLUMBLINE, subject, detail=detail))
