"""The edge of a reader: raw records of another system become typed ones, and those that cannot are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AwareDatetime, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import from_json

from core.model.findings import Gap, GapReason
from core.model.text import json_text
from core.ports import Partial

MAX_REASON = 160  # characters of what is wrong with a record
EPOCH, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

S = TypeVar("S")
T = TypeVar("T")

_unread: ContextVar[list[Gap] | None] = ContextVar("unread", default=None)


@contextmanager
def unread() -> Iterator[list[Gap]]:
    """Collect the gaps of every list that is made typed within, also in tasks that begin there."""
    gaps = list[Gap]()
    token = _unread.set(gaps)
    try:
        yield gaps
    finally:
        _unread.reset(token)


def typed(records: Iterable[S], made: Callable[[S], T | None]) -> Partial[T]:
    """Return what is made of each record, without None. One gap says how many cannot be made, and why the first cannot.

    The gaps of `records`, and of lists within them, are added.
    """
    every = list(records)
    items, reasons = Partial[T](gaps=gaps_in(records)), list[str]()
    with unread() as inner:
        for record in every:
            before = len(inner)
            try:
                item = made(record)
            except Exception as error:  # noqa: BLE001  # whatever one record does, the others are read
                del inner[before:]  # of lists in a record that is not read at all
                reasons.append(reason_of(error))
            else:
                items += [] if item is None else [item]
    items.gaps += tuple(dict.fromkeys(inner))
    if reasons:
        odd = f"{len(reasons)} of {len(every)} in an unexpected format ({reasons[0]})"
        items.gaps += (Gap("", GapReason.LEFT_OUT, odd),)
    if (outer := _unread.get()) is not None:
        outer += items.gaps
    return items


def gaps_in(items: Iterable[object]) -> tuple[Gap, ...]:
    return items.gaps if isinstance(items, Partial) else ()


def reason_of(error: Exception) -> str:
    """Return what is wrong with a record, on one short line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        text = f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"
    else:
        text = str(error) or type(error).__name__
    return line_of(text[: 4 * MAX_REASON], MAX_REASON)


def line_of(text: str, limit: int) -> str:
    """Return a text on one line, of characters that can be shown, which ends with “…” if it is longer than the limit."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _readable(value: object, validate: ValidatorFunctionWrapHandler) -> list[Any]:
    if not isinstance(value, list):
        return [] if value is None else validate(value)
    items = typed(value, lambda each: validate([each])[0])
    if value and not items:
        raise ValueError(items.gaps[-1].detail)
    return items


Items = Annotated[list[T], WrapValidator(_readable)]
"""The valid items of a list in an answer: Partial if others are not. Servers also write null for an empty list."""


def in_utc(at: datetime) -> datetime:
    """Return a time in UTC. Raises ValueError for one without a zone, and for one up to 1970, which stands for no time."""
    if at.tzinfo is None or not EPOCH < at < LAST:
        raise ValueError(f"{at.isoformat()!r} is not a time")
    return at.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(in_utc)]
"""A time of a record, in UTC."""


def json_in(body: bytes) -> Any:
    """Return the JSON in an answer, with a mark in place of half a character. Raises ValueError."""
    try:
        return from_json(body)
    except ValueError:
        return from_json(json_text(body))
