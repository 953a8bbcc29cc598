"""Reading of JSON lines files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import structlog

from core.model.errors import MalformedInput, SourceUnavailable

MAX_LINE = 1_000_000  # bytes of one object

log = structlog.get_logger()


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line's number and object. Malformed lines are logged and left out. Raises SourceUnavailable."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    yield number, _object(line)
                except MalformedInput as error:
                    skip(path, number, error)
    except OSError as error:
        raise SourceUnavailable(f"The file {path} cannot be read: {error.strerror}.") from error


def skip(path: Path, number: int, error: MalformedInput) -> None:
    log.warning("line_left_out", path=str(path), line=number, error=str(error))


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise MalformedInput(f"The line is longer than {MAX_LINE} bytes.")
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedInput(f"The line is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise MalformedInput("The line is not a JSON object.")
    return value
