"""Changes from files: `<root>/**/changes.jsonl`, one JSON object per line.

Required are `id`, `at`, `kind` and `title`. `service` or `services` name what a change affects, `revision` its commit
or the one it deploys, `commits` all that a deployment ships, `files` and `diff` what was changed.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, StringConstraints, ValidationError

from adapters.edge import Moment
from adapters.section import Host
from adapters.text_files import open_text
from adapters.tools.section import FilesTool, ParsedFiles, Tools, kept
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.model.text import json_text
from core.ports import Change, Partial, TimeWindow

MAX_LINES = 100_000  # per file
MAX_FILES = 200  # per change
MAX_NAMED = 100  # services or commits per change
MAX_DIFF = 20_000  # characters per diff
NAME = "changes.jsonl"

_Short = Annotated[str, StringConstraints(max_length=500)]
_Long = Annotated[str, StringConstraints(max_length=20_000)]


class _Record(BaseModel):
    id: _Short
    at: Moment
    kind: _Short
    title: _Short
    service: _Short = ""
    services: list[_Short] = []
    author: _Short = ""
    detail: _Long = ""
    files: list[_Short] = []
    url: _Short = ""
    revision: _Short = ""
    commits: list[_Short] = []
    diff: str = ""


class ChangeFiles:
    """ChangeReader over a folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._files = ParsedFiles(root, (NAME,), _read)

    async def changes(self, window: TimeWindow) -> list[Change]:
        paths = [path for path in await asyncio.to_thread(self._files.paths) if path.name == NAME]
        changes = await kept(self.name, [(str(path), asyncio.to_thread(self._files.content, path)) for path in paths])
        inside = (change for change in changes if window.start <= change.at < window.end)
        return Partial(sorted(inside, key=lambda change: change.at), changes.gaps)


def _read(path: Path) -> list[Change]:
    """Return the changes, and a gap for the first wrong line. Raises ToolUnavailable if no line is right."""
    changes: list[Change] = []
    wrong: list[ToolUnavailable] = []
    with open_text(path) as file:
        for number, line in enumerate(islice(file, MAX_LINES), start=1):
            try:
                changes += [_change(line, path, number)] if line.strip() else []
            except ToolUnavailable as error:
                wrong.append(error)
    if wrong and not changes:
        raise wrong[0]
    more = f"; {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
    return Partial(changes, [Gap("", GapReason.LEFT_OUT, f"{str(wrong[0]).rstrip('.')}{more}")] if wrong else [])


def _change(line: str, path: Path, number: int) -> Change:
    try:
        record = _Record.model_validate_json(json_text(line))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise ToolUnavailable(
            f"Line {number} of {path} is not a change record: {problem}; correct or remove it."
        ) from error
    limited = {
        "files": tuple(record.files[:MAX_FILES]),
        "services": tuple(record.services[:MAX_NAMED]),
        "commits": tuple(record.commits[:MAX_NAMED]),
        "diff": record.diff[:MAX_DIFF],
    }
    return Change(**record.model_dump() | limited)


class ChangeFilesTool(FilesTool):
    kind: Literal["change_files"]
    name: str = "change files"

    def open(self, host: Host) -> Tools:
        return Tools(changes=(ChangeFiles(self.name, self.path),))
