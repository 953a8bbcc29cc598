"""A question and an alert cost no more SQL than this: each transaction is a wait for the only writer of a SQLite file."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from tests.scenario.application import RunningBot
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")

TIMEOUT = 40.0  # seconds until nothing may be under way

# Of any number of events together: what is claimed and ended, and who lives.
SHARED = re.compile(r"\b(?:FROM|UPDATE|INTO) (?:tasks\b(?!.*VALUES)|replicas\b)", re.DOTALL)


@dataclass(slots=True)
class Counts:
    """The statements and transactions of the bot's own database, and the steps that the workflow engine has recorded."""

    statements: int = 0
    transactions: int = 0
    steps: int = 0


@contextmanager
def counted() -> Iterator[Counts]:
    counts, seen = Counts(), [False]

    def begun(connection: sa.Connection) -> None:
        if str(connection.engine.url.database).endswith("plumbline.sqlite"):
            seen[0] = False

    def executed(connection: sa.Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if not str(connection.engine.url.database).endswith("plumbline.sqlite"):
            counts.steps += "INTO main.operation_outputs" in statement
        elif not SHARED.search(statement):
            counts.statements += 1
            counts.transactions += not seen[0]
            seen[0] = True

    event.listen(sa.Engine, "begin", begun)
    event.listen(sa.Engine, "before_cursor_execute", executed)
    try:
        yield counts
    finally:
        event.remove(sa.Engine, "begin", begun)
        event.remove(sa.Engine, "before_cursor_execute", executed)


async def done(bot: RunningBot) -> None:
    """Wait until nothing is under way."""
    async with asyncio.timeout(TIMEOUT):
        while await under_way(bot):  # noqa: ASYNC110 -- the bot tells nobody
            await asyncio.sleep(0.1)


async def under_way(bot: RunningBot) -> int:
    async with bot.store.transaction() as transaction:
        backlog = await transaction.tasks.backlog()
    return backlog.waiting + backlog.under_way


async def test_a_question_takes_few_statements(bot: RunningBot) -> None:
    await done(bot)
    with counted() as counts:
        asked = await bot.slack.asks(bot.address, "how do I roll back a canary?")
        await bot.slack.until(lambda: bot.slack.replies(asked))
        await done(bot)
    assert counts.statements <= 15
    assert counts.transactions <= 7
    assert counts.steps == 0


async def test_an_alert_takes_few_statements_until_its_details_stand(bot: RunningBot) -> None:
    await done(bot)
    with counted() as counts:
        assert await bot.deliver("counted", alert("counted")) is not None
        await done(bot)
    assert counts.statements <= 111
    assert counts.transactions <= 55
    assert counts.steps == 2, "its owner and its cause; what is shown may be shown again"
