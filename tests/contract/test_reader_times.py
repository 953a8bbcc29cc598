"""The times that systems write, of whatever form, and what is no time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.readers.values import moment
from tests.cases import every_case

AT = datetime(2026, 3, 14, 9, 30, 5, tzinfo=UTC)


def test_a_time_is_read_in_the_form_of_any_system() -> None:
    cases: list[Any] = [
        "2026-03-14T09:30:05Z",
        "2026-03-14T09:30:05.000000000Z",
        "2026-03-14 15:00:05.000 India Standard Time",
        "2026-03-14 02:30:05 Pacific Daylight Time",
        "2026-03-14 10:30:05.000 CET",
        "2026-03-14 10:30:05 Europe/Berlin",
        "2026-03-14 09:30:05 UTC",
        "2026-03-14 09:30:05 +0000 UTC",
        "2026-03-14 02:30:05 -0700",
        "2026-03-14T09:30:05,000 Z",
        "Sat, 14 Mar 2026 09:30:05 GMT",
        "1773480605",
        1773480605000,
        1773480605.0,
    ]
    for written in cases:
        assert moment(written) == AT, written


@every_case(
    "written",
    [
        "2026-03-14T09:30:05",
        "2026-03-14 09:30:05 Somewhere Standard Time",
        "2026-03-14 09:30:05 Europe",
        "2026-03-14 09:30:05 ../../etc/passwd",
        "Sat, 14 Mar 2026 09:30:05 -0000",
        "9999-12-31 23:59:59 Pacific Standard Time",
        "Saturday",
        "nan",
        "",
        None,
        True,
        [],
        1e300,
    ],
)
def test_what_names_no_moment_is_no_time(written: Any) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        moment(written)
