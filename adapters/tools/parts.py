"""Reading of several parts of a system, of which some may fail."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from adapters.edge import gaps_in, unread
from core.model.errors import ToolUnavailable
from core.model.explanation import Gap, GapReason
from core.ports import ANSWER_BY, Partial, gap_of
from core.rca.observations import UNREAD

MAX_NAMED = 10  # items or gaps that are named
GRACE = 0.2  # seconds before a reader's deadline in which it joins the parts that were read

T = TypeVar("T")
Part = tuple[str, Awaitable[list[T]]]  # with its name


def refuse_gaps(gaps: Sequence[Gap]) -> None:
    """Raise ToolUnavailable with the first gaps, if there are any."""
    if gaps:
        more = f"; and {len(gaps) - MAX_NAMED} more" if len(gaps) > MAX_NAMED else ""
        raise ToolUnavailable(f"{'; '.join(gap.text for gap in gaps[:MAX_NAMED])}{more}.")


def chosen(items: Sequence[T], most: int, part: str, name: Callable[[T], str]) -> Partial[T]:
    """Return the first items, which are to be the most relevant ones, with a gap that counts and names the others."""
    others = items[most:]
    named = ", ".join(map(name, others[:MAX_NAMED])) + ("…" if len(others) > MAX_NAMED else "")
    left_out = [Gap(part, GapReason.LEFT_OUT, f"{len(others)} of {len(items)}: {named}")] if others else []
    return Partial(items[:most], (*gaps_in(items), *left_out))


async def kept(tool: str, parts: Sequence[Part[T]]) -> Partial[T]:
    """Return the items of all parts that could be read, with gaps for the others. Raises if no part could be read.

    `tool` is the reader's name; empty within one of its parts.
    """
    items: Partial[T] = Partial()
    errors: list[ToolUnavailable] = []
    outcomes = await answers([(name, _collected(part)) for name, part in parts])
    for (name, _), outcome in zip(parts, outcomes, strict=True):
        if isinstance(outcome, ToolUnavailable):
            errors.append(outcome)
            items.gaps += (gap_of(_part(tool, name), outcome),)
        else:
            items += outcome
            items.gaps += tuple(replace(gap, tool=_part(tool, gap.tool or name)) for gap in outcome.gaps)
    if errors and len(errors) == len(parts):
        raise errors[0]
    return items


async def _collected(part: Awaitable[list[T]]) -> Partial[T]:
    """Return the items of a part with the gaps of every list that was read for it."""
    with unread() as gaps:
        items = await part
    return Partial(items, dict.fromkeys((*gaps_in(items), *gaps)))


async def whole_text(output: Awaitable[str]) -> str:
    """Return a tool's output with a line for each gap of the lists that were read for it."""
    with unread() as gaps:
        text = await output
    return with_gaps(text, gaps)


def with_gaps(text: str, gaps: Iterable[Gap]) -> str:
    """Return a tool's output with a line for each gap in it."""
    return "\n".join([text, *(f"{UNREAD}{gap.text.removeprefix(': ')}" for gap in dict.fromkeys(gaps))])


async def detailed(tool: str, items: Sequence[tuple[str, T, Awaitable[T]]]) -> Partial[T]:
    """Return items with their details, in order, or without them, and with a gap, where those could not be read."""
    complete: Partial[T] = Partial()
    outcomes = await answers([(name, details) for name, _, details in items])
    for (name, item, _), outcome in zip(items, outcomes, strict=True):
        if isinstance(outcome, ToolUnavailable):
            complete.append(item)
            complete.gaps += (gap_of(_part(tool, name), outcome),)
        else:
            complete.append(outcome)
    return complete


def _part(tool: str, name: str) -> str:
    return f"{tool}: {name}" if tool and not name.startswith(f"{tool}: ") else name


async def answers(parts: Sequence[tuple[str, Awaitable[T]]]) -> list[T | ToolUnavailable]:
    """Return the answer of each part or its error, in order. Parts that miss the reader's deadline are given up."""
    until = ANSWER_BY.get() - GRACE
    before = ANSWER_BY.set(until)  # so that the parts of a part are joined earlier
    tasks = [asyncio.ensure_future(part) for _, part in parts]
    ANSWER_BY.reset(before)
    left = until - asyncio.get_running_loop().time()
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=None if math.isinf(left) else max(0.0, left))
        return [_outcome(name, task) for (name, _), task in zip(parts, tasks, strict=True)]
    finally:
        for task in tasks:
            task.cancel()


def _outcome(name: str, task: asyncio.Future[T]) -> T | ToolUnavailable:
    try:
        if not task.done():
            raise TimeoutError("no answer in time")
        return task.result()
    except ToolUnavailable as error:
        return error
    except OSError as error:
        unavailable = ToolUnavailable(f"{name} cannot be read: {error.strerror or error}.")
        unavailable.__cause__ = error
        return unavailable
