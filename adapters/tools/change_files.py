"""Records of changes in folders: `<root>/**/changes.jsonl`, one JSON object per line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, StringConstraints, ValidationError

from core.errors import ToolUnavailable
from core.ports import Change, TimeWindow

MAX_LINES = 100_000  # lines read of one file
MAX_FILES = 200  # file names kept of one change

_Short = Annotated[str, StringConstraints(max_length=500)]
_Long = Annotated[str, StringConstraints(max_length=20_000)]


class _Record(BaseModel):
    id: _Short
    at: AwareDatetime
    kind: _Short
    service: _Short = ""
    author: _Short = ""
    title: _Short
    detail: _Long = ""
    files: list[_Short] = []
    url: _Short = ""


class ChangeFiles:
    """ChangeReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self._name = name
        self._root = root

    @property
    def name(self) -> str:
        return self._name

    async def changes(self, window: TimeWindow) -> list[Change]:
        return await asyncio.to_thread(self._changes, window)

    def _changes(self, window: TimeWindow) -> list[Change]:
        if not self._root.is_dir():
            raise ToolUnavailable(f"The folder {self._root} does not exist: correct its path in plumbline.yaml.")
        changes = [change for path in sorted(self._root.glob("**/changes.jsonl")) for change in _read(path)]
        return sorted(
            (change for change in changes if window.start <= change.at < window.end), key=lambda change: change.at
        )


def _read(path: Path) -> Iterator[Change]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(islice(file, MAX_LINES), start=1):
                if line.strip():
                    yield _change(line, path, number)
    except (OSError, UnicodeDecodeError) as error:
        raise ToolUnavailable(f"The changes in {path} cannot be read: {error}.") from error


def _change(line: str, path: Path, number: int) -> Change:
    try:
        record = _Record.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise ToolUnavailable(f"Line {number} of {path} is no change record: {problem}; mend or remove it.") from error
    return Change(
        id=record.id,
        at=record.at,
        kind=record.kind,
        service=record.service,
        author=record.author,
        title=record.title,
        detail=record.detail,
        files=tuple(record.files[:MAX_FILES]),
        url=record.url,
    )
