"""One bot of the sample company for all that people say to it on their first day."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenario.first_day.sample import SampleBot, sample_bot

CHANGE = "Give the fares of summer their own table"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sample(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SampleBot]:
    folder = tmp_path_factory.mktemp("first-day")
    async with sample_bot(folder) as started:
        _write_change(folder / "company/live/now/changes.jsonl")
        yield started


def _write_change(path: Path) -> None:
    path.parent.mkdir()
    change = {
        "id": "4f1c2aa",
        "at": (datetime.now(UTC) - timedelta(hours=2)).isoformat(),
        "kind": "deployment",
        "service": "pricing",
        "author": "ines",
        "title": CHANGE,
        "detail": "",
    }
    path.write_text(json.dumps(change) + "\n")
