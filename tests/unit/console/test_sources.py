"""The condition of a source."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from adapters.console.console import SourceStatus
from tests.cases import every_case

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


@every_case(
    ("read_at", "documents", "failure", "condition"),
    [
        (NOW - timedelta(hours=1), 60, "", "fresh"),
        (NOW - timedelta(hours=25), 60, "", "old"),
        (None, 0, "", "never read"),
        (None, 60, "", "first import"),
        (NOW, 60, "The folder is gone.", "failing"),
    ],
)
def test_the_condition_of_a_source(read_at: datetime | None, documents: int, failure: str, condition: str) -> None:
    assert SourceStatus("handbook", "folder docs", documents, read_at, failure).condition(NOW) == condition
