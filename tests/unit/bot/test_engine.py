"""How the workflow engine starts, without one: a process has only one."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest
from sqlalchemy.exc import OperationalError

from adapters.store.database import open_database, run_when_available
from bot.work import engine
from core.model.errors import StoreUnavailable


class Starts:
    """Of an engine whose database refuses every one but the third."""

    def __init__(self) -> None:
        self.tried = 0

    def __call__(self) -> None:
        self.tried += 1
        if self.tried < 3:
            raise OperationalError("SELECT 1", None, Exception("It is no database."))


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    async def nothing(*_: object) -> None:
        pass

    starts = Starts()
    monkeypatch.setattr("bot.work.engine.DBOS.launch", starts)
    monkeypatch.setattr("bot.work.engine.configure", lambda *_: None)
    monkeypatch.setattr("bot.work.engine.stop", nothing)
    monkeypatch.setattr("adapters.store.database.PAUSE", 0)
    return starts


@pytest.mark.parametrize(("address", "tried"), [("sqlite:///workflows.db", 1), ("postgresql://database/plumbline", 3)])
async def test_a_server_is_tried_again_and_a_broken_file_is_not(address: str, tried: int, starts: Starts) -> None:
    database = open_database(address)
    with suppress(StoreUnavailable):
        await run_when_available(database, partial(engine.launch, address, "replica"))
    await database.dispose()
    assert starts.tried == tried
