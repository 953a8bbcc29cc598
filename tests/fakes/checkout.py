"""Checkouts made by git."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def git(folder: Path, *arguments: str, at: datetime = START) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Asha",
        "GIT_AUTHOR_EMAIL": "asha@example.com",
        "GIT_COMMITTER_NAME": "Asha",
        "GIT_COMMITTER_EMAIL": "asha@example.com",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": at.isoformat(),
    }
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def commit(folder: Path, minutes: float, message: str, *files: str) -> None:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(message, encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", message, at=START + timedelta(minutes=minutes))
