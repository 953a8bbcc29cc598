"""The commits of local checkouts, as changes of the services that are built from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from adapters.git_command import PLAIN_COMMITS, git_output
from core.errors import ToolUnavailable
from core.ports import Change, TimeWindow

TIMEOUT = 6.0  # seconds for one repository
MAX_COMMITS = 500  # of one repository within a window
MAX_OUTPUT = 8 * 1024 * 1024  # bytes that git may answer with
MAX_FILES = 200  # file names kept of one commit
MAX_TITLE = 500  # characters
MAX_DETAIL = 4_000  # characters

_FORMAT = "%x1e%H%x1f%cI%x1f%an%x1f%s%x1f%b%x1f"


class GitHistory:
    """ChangeReader over checkouts: service → folder. A commit is dated when it was committed to the branch."""

    def __init__(self, name: str, folders: Mapping[str, Path]) -> None:
        self._name = name
        self._folders = dict(folders)

    @property
    def name(self) -> str:
        return self._name

    async def changes(self, window: TimeWindow) -> list[Change]:
        logs = await asyncio.gather(*(self._log(service, window) for service in self._folders))
        changes = [change for log in logs for change in log]
        return sorted(
            (change for change in changes if window.start <= change.at < window.end), key=lambda change: change.at
        )

    async def _log(self, service: str, window: TimeWindow) -> list[Change]:
        folder = self._folders[service]
        output = await git_output(
            folder,
            *("log", f"--format={_FORMAT}", "--name-only", *PLAIN_COMMITS),
            *(f"--since={window.start.isoformat()}", f"--until={window.end.isoformat()}", f"--max-count={MAX_COMMITS}"),
            "HEAD",
            label=f"git log of {folder}",
            seconds=TIMEOUT,
            max_bytes=MAX_OUTPUT,
            failure=ToolUnavailable,
        )
        return list(_commits(service, output.decode("utf-8", "replace")))


def _commits(service: str, log: str) -> Iterator[Change]:
    for record in log.split("\x1e")[1:]:
        fields = record.split("\x1f")
        if len(fields) != 6:  # somebody wrote such a character into a message
            continue
        commit, at, author, title, body, files = fields
        yield Change(
            id=commit[:12],
            at=datetime.fromisoformat(at).astimezone(UTC),
            kind="commit",
            service=service,
            author=author[:MAX_TITLE],
            title=title[:MAX_TITLE],
            detail=body.strip()[:MAX_DETAIL],
            files=tuple(name for name in files.splitlines() if name)[:MAX_FILES],
        )
