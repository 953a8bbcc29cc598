"""Times, numbers and texts in an answer, however a system writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from adapters.readers.json_path import JsonItem, Path

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))
"""Numbers below the first of each count units of as many microseconds since 1970: seconds, milliseconds, microseconds."""


def moment(value: Any) -> datetime:
    """Return a time with its zone, or a number since 1970 whose size shows its unit. Raises ValueError for anything else."""
    number = _number(value)
    if number is None:
        at = datetime.fromisoformat(value) if isinstance(value, str) else _EPOCH.replace(tzinfo=None)
        if at.tzinfo is None:
            raise ValueError(f"{value!r} is not a time")
        return at.astimezone(UTC)
    unit = next((each for below, each in _UNITS if abs(number) < below), None)
    try:
        return _EPOCH + timedelta(microseconds=number * unit if unit is not None else number // 1_000)
    except OverflowError as error:
        raise ValueError(f"{value!r} is not a time") from error


def amount(value: Any) -> float:
    """Return a number; NaN for none. Raises ValueError for anything else."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")  # noqa: TRY004  # of an answer, not of a caller
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{value!r} is not a number") from error


def text_of(value: Any) -> str:
    """Return a value as text: an object or a list as JSON, nothing as an empty one."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def texts(paths: Iterable[Path], item: JsonItem) -> str:
    """Return what is said at some paths, the parts that there are."""
    return " ".join(filter(None, (text_of(path.first(item)).strip() for path in paths)))


def strings(value: Any) -> dict[str, str]:
    """Return the members of an object as texts; none of anything else."""
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {name: text_of(each) for name, each in members.items()}


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            return int(value) if value.isascii() and value.isdecimal() else float(value)
        except ValueError:
            return None
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value
