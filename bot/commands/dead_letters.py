"""`plumbline dead-letters`: list, retry and drop messages that a chat refused."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from rich.console import Console
from rich.table import Table

from adapters.clock import SystemClock
from adapters.store.database import migrate, open_database
from adapters.store.store import SqlStore
from bot.config.settings import Settings
from core.model.errors import PlumblineError
from core.ports import DeadLetter, Store
from handlers.questions.redeliver import ask_to_redeliver, drop_dead_letter

MAX_SHOWN = 200
NO_SUCH = "There is no dead letter {intent}: `plumbline dead-letters list` shows them."


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
            out.print(f"{intent} is tried again by the running bot.", highlight=False, markup=False)
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
