"""`plumbline dead-letters`: what the chats did not take, and having it tried again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from adapters.store.database import migrate, open_database
from adapters.store.store import SqlStore
from bot.settings import Settings
from core.errors import PlumblineError
from core.ports import DeadLetter
from handlers.redeliver import ask_to_redeliver

MAX_SHOWN = 200


async def run_dead_letters(
    settings: Settings, retried: Sequence[str], out: Console, *, every: bool, as_json: bool
) -> int:
    """List them; or have those of the intents `retried`, or `every` one, tried again by the running bot."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    engine = open_database(settings.database)
    try:
        await migrate(engine)
        store = SqlStore(engine)
        async with store.transaction() as transaction:
            letters = await transaction.dead_letters.latest(MAX_SHOWN)
        intents = [letter.intent for letter in letters] if every else list(retried)
        if not intents and not every:
            _print(letters, out, as_json=as_json)
        for intent in intents:
            if not await ask_to_redeliver(intent, store=store):
                raise PlumblineError(f"There is no dead letter {intent}: `plumbline dead-letters list` shows them.")
            out.print(f"{intent} is tried again by the running bot.", highlight=False, markup=False)
    finally:
        await engine.dispose()
    return 0


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
        out.print("There is no dead letter: every chat took what it was sent.")
        return
    table = Table("intent", "place", "reason", "at")
    for row in rows:
        table.add_row(*row.values())
    out.print(table)
