"""Reading of JSON lines files for evaluations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from core.model.errors import MalformedInput


def json_lines(path: Path, *fields: str) -> list[dict[str, str]]:
    """Return the objects of a JSON lines file (plain or .gz), each with these fields. Raises MalformedInput."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            rows: list[Any] = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError) as error:
        raise MalformedInput(f"{path} is no file of JSON lines: {error}.") from error
    if not rows or not all(isinstance(row, dict) and set(fields) <= row.keys() for row in rows):
        raise MalformedInput(f"{path} must have one JSON object on each line, each with {', '.join(fields)}.")
    return rows
