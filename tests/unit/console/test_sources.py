"""The condition of a source."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from adapters.console.console import SourceStatus

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("read_at", "failure", "condition"),
    [
        (NOW - timedelta(hours=1), "", "fresh"),
        (NOW - timedelta(hours=25), "", "old"),
        (None, "", "never read"),
        (NOW, "The folder is gone.", "failing"),
    ],
)
def test_the_condition_of_a_source(read_at: datetime | None, failure: str, condition: str) -> None:
    assert SourceStatus("handbook", "folder docs", 60, None, read_at, failure).condition(NOW) == condition
