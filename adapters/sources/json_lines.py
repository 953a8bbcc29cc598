"""Reading of untrusted JSON: lines of a file, and rows of an answer. Invalid ones are left out and named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adapters.text_files import open_text
from core.model.errors import SourceUnavailable
from core.model.layout import counted
from core.model.lenient_formats import json_text
from core.ports import LeftOut

MAX_LINE = 1_000_000  # bytes of one object

M = TypeVar("M", bound=BaseModel)


def records(path: Path, kind: type[M], left_out: list[LeftOut]) -> Iterator[M]:
    """Yield the valid lines of a file, and add the others to `left_out`.

    Raises SourceUnavailable if the file cannot be read.
    """
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if len(line) > MAX_LINE:
                    left_out.append(LeftOut(f"line {number}", f"The line is longer than {MAX_LINE} bytes."))
                elif line.strip():
                    try:
                        yield kind.model_validate_json(json_text(line))
                    except ValidationError as error:
                        problem = error.errors(include_input=False)[0]
                        reason = f"`{'.'.join(map(str, problem['loc']))}`: {problem['msg']}."
                        left_out.append(LeftOut(f"line {number}", reason))
    except OSError as error:
        raise SourceUnavailable(f"The file {path} cannot be read: {error.strerror}.") from error


def messages_in(rows: Iterable[Any], kind: type[M], left_out: list[LeftOut], path: str) -> list[M]:
    """Return the valid messages of a chat, and add the number of the others, at `path`, to `left_out`."""
    messages, errors = list[M](), list[str]()
    for row in rows:
        try:
            messages.append(kind.model_validate(row))
        except ValidationError as error:
            errors.append(str(error.errors()[0]["msg"]))
    if errors:
        reason = f"{counted(len(errors), 'message')} cannot be read: {errors[0]}."
        left_out.append(LeftOut(path, reason, is_indexed=True))
    return messages
