"""Whatever a repository's configuration, hooks and attributes name, reading it runs none of it.

Each program leaves a file with the name of the setting that named it, so that a failure says which one was obeyed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.sources.git_repository import GitRepositorySource, Repository
from adapters.tools.code_repository import GitHistory
from core.model.errors import Unavailable
from core.ports import TimeWindow
from tests.contract.source_worlds.repository import git

PROGRAMS = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.askPass", "core.sshCommand", "core.gitProxy"),
    *("core.alternateRefsCommand", "credential.helper", "credential.https://127.0.0.1.helper", "diff.external"),
    *("diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    *("gpg.program", "gpg.openpgp.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "gpg.x509.program"),
    *("interactive.diffFilter", "merge.evil.driver", "pager.log", "pager.show", "pager.ls-tree", "sequence.editor"),
    *("remote.origin.uploadpack", "uploadpack.packObjectsHook", "submodule.evil.update"),
)
COMMANDS = ("cat-file", "fetch", "log", "ls-tree", "ls-remote", "rev-parse", "show")  # an alias of each
SETTINGS = {"log.showSignature": "true", "log.mailmap": "true", "extensions.partialClone": "origin"}
HOOKS = ("fsmonitor-watchman", "post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction")
SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----"

Reading = Callable[[Path], Awaitable[object]]


async def history(checkout: Path) -> object:
    now = datetime.now(UTC)
    return await GitHistory("git", {"api": checkout}).changes(TimeWindow(now - timedelta(days=9_999), now))


async def documents(checkout: Path) -> object:
    return await found(GitRepositorySource("docs", Repository(checkout)))


async def fetched_documents(checkout: Path) -> object:
    return await found(GitRepositorySource("docs", Repository(checkout.parent / "copy.git", checkout.as_uri())))


async def found(source: GitRepositorySource) -> list[str]:
    await source.check()
    return [document.id async for part in source.changes("", frozenset()) for document in part.documents]


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """The folder in which whatever runs leaves its name."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


@pytest.fixture
def checkout(tmp_path: Path, marks: Path) -> Path:
    """A clone with a signed commit, in which everything that can name a program names one."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "a.md").write_text("# A", encoding="utf-8")
    (folder / ".gitattributes").write_text("*.md filter=evil diff=evil merge=evil\n", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=change")
    git(folder, "update-ref", "refs/heads/main", signed(folder))

    def program(name: str) -> str:
        """A script, since some programs are run by a shell and others are not."""
        file = tmp_path / f"program-{name.replace('/', '-')}"
        file.write_text(f"#!/bin/sh\ntouch '{marks / file.name}'\n", encoding="utf-8")
        file.chmod(0o755)
        return str(file)

    hooks = tmp_path / "hooks"
    for where in (hooks, folder / ".git" / "hooks"):
        where.mkdir(exist_ok=True)
        for hook in HOOKS:
            (where / hook).write_text(f"#!/bin/sh\n{program(hook)}\n", encoding="utf-8")
            (where / hook).chmod(0o755)
    for name in PROGRAMS:
        git(folder, "config", name, program(name))
    for command in COMMANDS:
        git(folder, "config", f"alias.{command}", f"!{program(f'alias.{command}')}")
    git(folder, "config", "remote.origin.url", (tmp_path / "elsewhere").as_uri())
    git(folder, "config", "remote.origin.promisor", "true")
    git(folder, "config", "core.hooksPath", str(hooks))
    for name, value in SETTINGS.items():
        git(folder, "config", name, value)
    return folder


def signed(folder: Path) -> str:
    """The commit as one that carries a signature; its name."""
    head, _, message = git(folder, "cat-file", "commit", "HEAD").partition("\n\n")
    command = ["git", "-C", str(folder), "hash-object", "-t", "commit", "-w", "--stdin"]
    content = f"{head}\n{SIGNATURE}\n\n{message}\n"
    return subprocess.run(command, input=content, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("reading", [history, documents, fetched_documents])
async def test_no_program_that_a_repository_names_runs_when_it_is_read(
    reading: Reading, checkout: Path, marks: Path
) -> None:
    assert await reading(checkout)
    assert left(marks) == []


@pytest.mark.parametrize("reading", [documents, fetched_documents])
async def test_no_program_runs_for_an_object_that_is_missing_and_would_be_fetched(
    reading: Reading, checkout: Path, marks: Path
) -> None:
    blob = git(checkout, "rev-parse", "main:a.md")
    (checkout / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with suppress(Unavailable, ValueError):  # what becomes of the document is not what this is about
        await reading(checkout)
    assert left(marks) == []


def left(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.iterdir())
