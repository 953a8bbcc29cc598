"""Worlds of a git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from adapters.sources.git_repository import GitRepositorySource, Repository


def git(folder: Path, *arguments: str, at: str = "2026-02-01T10:00:00Z") -> str:
    """Run git as somebody who has no settings."""
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.example", "GIT_COMMITTER_NAME": "A"}
    dates = {"GIT_COMMITTER_EMAIL": "a@b.example", "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    nobody = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=who | dates | nobody).stdout.strip()


class GitWorld:
    """A repository with a commit for every change; with `fetched`, the source has a copy of its own."""

    def __init__(self, folder: Path, *, fetched: bool) -> None:
        self.folder = folder / "repository"
        self.folder.mkdir()
        git(self.folder, "init", "--quiet", "--initial-branch=main")
        (self.folder / "LICENSE").write_text("none", encoding="utf-8")
        self._commit()
        url = self.folder.as_uri() if fetched else ""
        clone = folder / "copies" / "docs.git" if fetched else self.folder
        links = "https://git.example/docs/blob/{commit}/{path}"
        self.source = GitRepositorySource("docs", Repository(clone, url, links=links))

    def write(self, key: str, text: str) -> None:
        (self.folder / f"{key}.md").write_text(f"# Page {key}\n\n{text}", encoding="utf-8")
        self._commit()

    def remove(self, key: str) -> None:
        (self.folder / f"{key}.md").unlink()
        self._commit()

    def hide(self, key: str) -> None:
        path = self.folder / f"{key}.md"
        path.write_text(f"---\nreaders: [channel:vault]\n---\n{path.read_text()}", encoding="utf-8")
        self._commit()

    def _commit(self) -> None:
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message=change")
