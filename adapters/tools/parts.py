"""Reading of several parts of a system, of which some may fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from core.model.errors import ToolUnavailable
from core.ports import Partial, gap_of

T = TypeVar("T")
Part = tuple[str, Awaitable[list[T]]]  # with its name


async def kept(tool: str, parts: Sequence[Part[T]]) -> Partial[T]:
    """Return the items of all parts that could be read, with gaps for the others. Raises if no part could be read."""
    answers = await asyncio.gather(*(part for _, part in parts), return_exceptions=True)
    found: Partial[T] = Partial()
    errors: list[ToolUnavailable] = []
    for (name, _), answer in zip(parts, answers, strict=True):
        if isinstance(answer, ToolUnavailable):
            errors.append(answer)
            found.gaps += (gap_of(f"{tool}: {name}", answer),)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += answer
            found.gaps += answer.gaps if isinstance(answer, Partial) else ()
    if errors and len(errors) == len(parts):
        raise errors[0]
    return found
