"""How the workflow engine starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from bot import engine
from tests.databases import sqlite_url


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """The address of a file that holds something else."""
    url = sqlite_url(tmp_path)
    Path(url.removeprefix("sqlite:///")).write_text("No database. " * 100)
    return url


async def test_a_file_that_is_no_database_is_not_waited_for(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def waited(_seconds: float) -> None:
        raise AssertionError

    monkeypatch.setattr("bot.engine.asyncio.sleep", waited)
    engine.configure(broken, "replica")
    try:
        with pytest.raises(DBAPIError, match="not a database"):
            await engine.launch(broken, "replica")
    finally:
        monkeypatch.undo()
        await engine.stop()
