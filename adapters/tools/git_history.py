"""Commits of local checkouts with their diffs, as changes of the services built from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from adapters.git_command import PLAIN_COMMITS, git_output
from adapters.tools.parts import answers, kept
from core.model.errors import ToolUnavailable
from core.model.explanation import Gap, GapReason
from core.ports import Change, Partial, TimeWindow

TIMEOUT = 6.0  # seconds per repository
MAX_COMMITS = 500  # per repository within a window
MAX_OUTPUT = 8 * 1024 * 1024  # bytes of Git's output
MAX_FILES = 200  # per commit
MAX_DIFFS = 60  # latest commits of a repository whose diffs are read
MAX_DIFF = 20_000  # characters per diff
MAX_TITLE = 500  # characters
MAX_DETAIL = 4_000  # characters

_GENERATED = (":(exclude)*.lock", ":(exclude)*lock.json", ":(exclude)*.min.*", ":(exclude)*.svg", ":(exclude)vendor/*")
"""Paths whose diffs explain nothing."""

_FORMAT = "%x1e%H%x1f%cI%x1f%an%x1f%s%x1f%b%x1f"


class GitHistory:
    """ChangeReader over checkouts: service → folder. A commit's date is its commit date.

    A folder may be part of a checkout that several services share: a commit then affects the services whose folders
    contain its files, and no service if it changes common files.
    """

    def __init__(self, name: str, folders: Mapping[str, Path]) -> None:
        self.name = name
        self._folders: dict[Path, dict[str, str]] = {}
        for service, folder in folders.items():
            root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
            self._folders.setdefault(root, {})[service] = folder.relative_to(root).as_posix()

    async def changes(self, window: TimeWindow) -> list[Change]:
        logs = await kept(self.name, [(f"{folder}", self._log(folder, window)) for folder in self._folders])
        inside = (change for change in logs if window.start <= change.at < window.end)
        return Partial(sorted(inside, key=lambda change: change.at), logs.gaps)

    async def _log(self, folder: Path, window: TimeWindow) -> list[Change]:
        """Return the commits with their diffs; without any if these are too large or too slow: commits matter more."""
        named = self._git(folder, window, f"--format={_FORMAT}", "--name-only", f"--max-count={MAX_COMMITS}", "HEAD")
        log, patches = await answers([("commits", named), ("diffs", self._patches(folder, window))])
        if isinstance(log, ToolUnavailable):
            raise log
        changes: Partial[Change] = Partial()
        if isinstance(patches, ToolUnavailable):
            changes.gaps += (Gap(f"{self.name}: diffs of {folder}", GapReason.LEFT_OUT, str(patches).rstrip(".")),)
            patches = ""
        records = (record.partition("\n") for record in patches.split("\x1e")[1:])
        diffs = {commit.strip(): diff.strip()[:MAX_DIFF] for commit, _, diff in records}
        for change in _commits(log):
            services = self._services(folder, change.files)
            only, several = (services[0], ()) if len(services) == 1 else ("", services)
            changes.append(replace(change, service=only, services=several, diff=diffs.get(change.revision, "")))
        return changes

    def _services(self, folder: Path, files: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            service
            for service, inside in self._folders[folder].items()
            if (inside == "." and len(self._folders[folder]) == 1)
            or any(file.startswith(f"{inside}/") for file in files)
        )

    async def _patches(self, folder: Path, window: TimeWindow) -> str:
        limit = f"--max-count={MAX_DIFFS}"
        shown = ("--format=%x1e%H", "--patch", "--unified=0", limit, "HEAD", "--", ".", *_GENERATED)
        return await self._git(folder, window, *shown)

    async def _git(self, folder: Path, window: TimeWindow, *arguments: str) -> str:
        output = await git_output(
            folder,
            *("log", "--no-color", *PLAIN_COMMITS),
            *(f"--since={window.start.isoformat()}", f"--until={window.end.isoformat()}"),
            *arguments,
            label=f"git log of {folder}",
            seconds=TIMEOUT,
            max_bytes=MAX_OUTPUT,
            failure=ToolUnavailable,
        )
        return output.decode("utf-8", "replace")


def _commits(log: str) -> Iterator[Change]:
    for record in log.split("\x1e")[1:]:
        fields = record.split("\x1f")
        if len(fields) != 6:  # a message contains the separator
            continue
        commit, at, author, title, body, files = fields
        yield Change(
            id=commit[:12],
            at=datetime.fromisoformat(at).astimezone(UTC),
            kind="commit",
            service="",
            author=author[:MAX_TITLE],
            title=title[:MAX_TITLE],
            detail=body.strip()[:MAX_DETAIL],
            files=tuple(name for name in files.splitlines() if name)[:MAX_FILES],
            revision=commit,
        )
