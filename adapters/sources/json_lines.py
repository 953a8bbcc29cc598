"""Reading of untrusted JSON: lines of a file, and rows of an answer. Invalid ones are logged and left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from adapters.text_files import open_text
from core.model.errors import MalformedInput, SourceUnavailable
from core.model.lenient_formats import json_text

MAX_LINE = 1_000_000  # bytes of one object

M = TypeVar("M", bound=BaseModel)

log = structlog.get_logger()


def records(path: Path, kind: type[M]) -> Iterator[M]:
    """Yield the valid lines of a file. Raises SourceUnavailable if it cannot be read."""
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    yield _record(line, kind)
                except MalformedInput as error:
                    log.warning("line_left_out", path=str(path), line=number, error=str(error))
    except OSError as error:
        raise SourceUnavailable(f"The file {path} cannot be read: {error.strerror}.") from error


def messages_in(rows: Iterable[Any], kind: type[M], **origin: str) -> Iterator[M]:
    """Yield the valid messages of a chat. Invalid ones are logged with `origin`."""
    for row in rows:
        try:
            yield kind.model_validate(row)
        except ValidationError as error:
            log.warning("message_left_out", **origin, error=str(error.errors()[0]["msg"]))


def _record(line: str, kind: type[M]) -> M:
    if len(line) > MAX_LINE:
        raise MalformedInput(f"The line is longer than {MAX_LINE} bytes.")
    try:
        return kind.model_validate_json(json_text(line))
    except ValidationError as error:
        detail = error.errors(include_input=False)[0]
        raise MalformedInput(f"`{'.'.join(map(str, detail['loc']))}`: {detail['msg']}.") from error
