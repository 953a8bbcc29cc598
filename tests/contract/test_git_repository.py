"""Git repositories: links and dates of documents, and what is never run."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.sources import section
from adapters.sources.git_repository import GitRepositorySource, Repository
from core.model.document import Document
from core.model.errors import ConfigurationError, SourceUnavailable
from tests.contract.source_worlds.repository import git

LINKS = "https://git.example/docs/blob/{commit}/{path}"
FEBRUARY, MARCH = "2026-02-01T10:00:00Z", "2026-03-01T10:00:00Z"


def day(month: int) -> datetime:
    return datetime(2026, month, 1, 10, tzinfo=UTC)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def commit(folder: Path, at: str = FEBRUARY, **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "add", "--all", at=at)
    git(folder, "commit", "--quiet", "--message=change", at=at)
    return git(folder, "rev-parse", "HEAD")


def local(folder: Path) -> GitRepositorySource:
    return GitRepositorySource("docs", Repository(folder, links=LINKS))


def fetched(folder: Path, branch: str = "") -> GitRepositorySource:
    return GitRepositorySource("docs", Repository(folder.parent / "copy.git", folder.as_uri(), branch, LINKS))


async def read(
    source: GitRepositorySource, cursor: str = "", known: frozenset[str] = frozenset()
) -> tuple[dict[str, Document], frozenset[str], str]:
    parts = [part async for part in source.changes(cursor, known)]
    found = {document.id.removeprefix("docs/"): document for part in parts for document in part.documents}
    return found, frozenset[str]().union(*(part.removed_ids for part in parts)), parts[-1].cursor


async def test_a_document_links_to_its_file_at_the_commit(repository: Path) -> None:
    head = commit(repository, **{"runbooks__drain it_md": "# Drain\n\nRun it."})
    found, _, _ = await read(local(repository))
    assert found["runbooks/drain it.md"] == Document(
        id="docs/runbooks/drain it.md",
        source="docs",
        family="runbooks",
        title="Drain",
        text="# Drain\n\nRun it.",
        url=f"https://git.example/docs/blob/{head}/runbooks/drain%20it.md",
        updated_at=day(2),
    )


async def test_a_commit_that_leaves_a_file_alone_leaves_its_document_alone(repository: Path) -> None:
    first = commit(repository, a_md="# A", b_md="# B")
    source = local(repository)
    _, _, cursor = await read(source)
    second = commit(repository, MARCH, b_md="# B\n\nNew.", c_md="# C")
    found, removed, _ = await read(source, cursor, frozenset({"docs/a.md", "docs/b.md"}))
    assert (set(found), removed) == ({"b.md", "c.md"}, frozenset())
    assert second in found["b.md"].url
    assert first != second


async def test_the_date_is_that_of_the_commit_that_changed_the_file_last(repository: Path) -> None:
    commit(repository, a_md="# A", b_md="# B")
    commit(repository, MARCH, b_md="# B\n\nNew.", c_md="---\nupdated: 2025-05-05\n---\n# C")
    found, _, _ = await read(local(repository))
    assert {path: document.updated_at for path, document in found.items()} == {
        "a.md": day(2),
        "b.md": day(3),
        "c.md": datetime(2025, 5, 5, tzinfo=UTC),
    }


async def test_without_the_history_there_is_a_date_only_for_what_was_seen_to_change(repository: Path) -> None:
    commit(repository, a_md="# A", b_md="# B")
    source = fetched(repository)
    found, _, cursor = await read(source)
    assert {document.updated_at for document in found.values()} == {None}
    commit(repository, MARCH, b_md="# B\n\nNew.")
    found, _, _ = await read(source, cursor, frozenset({"docs/a.md", "docs/b.md"}))
    assert {path: document.updated_at for path, document in found.items()} == {"b.md": day(3)}


async def test_only_the_newest_commit_of_the_branch_is_fetched(repository: Path) -> None:
    commit(repository, a_md="# A")
    git(repository, "checkout", "--quiet", "-b", "next")
    commit(repository, MARCH, b_md="# B")
    commit(repository, MARCH, b_md="# B again")
    git(repository, "checkout", "--quiet", "main")
    found, _, _ = await read(fetched(repository, branch="next"))
    assert {path: document.text for path, document in found.items()} == {"a.md": "# A", "b.md": "# B again"}
    assert git(repository.parent / "copy.git", "rev-list", "--count", "FETCH_HEAD") == "1"


async def test_a_position_in_another_repository_is_the_start(repository: Path) -> None:
    commit(repository, a_md="# A")
    found, _, _ = await read(local(repository), "0" * 40, frozenset({"docs/a.md", "docs/gone.md"}))
    assert set(found) == {"a.md"}


async def test_links_submodules_and_large_files_are_no_documents(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret", encoding="utf-8")
    (repository / "link.md").symlink_to(tmp_path / "secret.md")
    commit(repository, a_md="# A", big_md="x" * 2_000_001)
    other = commit(repository, inner_md="# Inner")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{other},module.md")
    git(repository, "commit", "--quiet", "--message=module")
    for source in (local(repository), fetched(repository)):
        found, _, _ = await read(source)
        assert set(found) == {"a.md", "inner.md"}


async def test_a_file_that_makes_no_sense_is_left_out_and_the_others_are_read(repository: Path) -> None:
    (repository / "bad.md").write_bytes(b"\xff\xfe broken")
    commit(repository, a_md="# A", readers_md="---\nreaders: []\n---\nsecret")
    assert set((await read(local(repository)))[0]) == {"a.md"}


async def test_a_missing_blob_does_not_end_the_reading_and_is_named_until_it_is_back(repository: Path) -> None:
    commit(repository, a_md="# A", b_md="# B")
    blob = git(repository, "rev-parse", "HEAD:b.md")
    stored = repository / ".git" / "objects" / blob[:2] / blob[2:]
    stored.rename(repository.parent / "blob")
    found, _, cursor = await read(local(repository))
    assert set(found) == {"a.md"}
    for _ in range(2):
        parts = [part async for part in local(repository).changes(cursor, frozenset({"docs/a.md"}))]
        assert [each.path for part in parts for each in part.left_out] == ["b.md"]
    (repository.parent / "blob").rename(stored)
    found, _, _ = await read(local(repository), cursor, frozenset({"docs/a.md"}))
    assert set(found) == {"b.md"}


async def test_a_changed_file_that_cannot_be_read_leaves_the_document_that_is_indexed(repository: Path) -> None:
    commit(repository, a_md="# A", b_md="# B")
    _, _, cursor = await read(local(repository))
    commit(repository, b_md="# B, changed")
    blob = git(repository, "rev-parse", "HEAD:b.md")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found, removed, _ = await read(local(repository), cursor, frozenset({"docs/a.md", "docs/b.md"}))
    assert (found, removed) == ({}, frozenset())


async def test_a_first_reading_that_was_killed_goes_on_where_it_was(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, a_md="# A", b_md="# B", c_md="# C")
    monkeypatch.setattr(section, "BATCH", 1)
    first = await anext(local(repository).changes("", frozenset()))
    rest, removed, _ = await read(local(repository), first.cursor, frozenset({"docs/a.md"}))
    assert ([each.id for each in first.documents], set(rest), removed) == (["docs/a.md"], {"b.md", "c.md"}, frozenset())


async def test_readers_of_the_repository_read_what_does_not_say_by_whom_it_may_be_read(repository: Path) -> None:
    commit(repository, a_md="# A", b_md="---\nreaders: [channel:vault]\n---\n# B")
    source = GitRepositorySource("docs", Repository(repository, readers=frozenset({"channel:ops"})))
    found, _, _ = await read(source)
    assert {path: document.readers for path, document in found.items()} == {
        "a.md": {"channel:ops"},
        "b.md": {"channel:vault"},
    }


@pytest.mark.parametrize(
    ("url", "branch"),
    [
        ("ext::sh -c 'touch /tmp/x'", ""),
        ("git://host.example/docs", ""),
        ("http://host.example/docs", ""),
        ("--upload-pack=touch /tmp/x", ""),
        ("https://me:secret@host.example/docs", ""),
        ("https://host.example/docs", "--upload-pack=x"),
    ],
)
def test_other_schemes_options_and_passwords_are_refused(url: str, branch: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        GitRepositorySource("docs", Repository(tmp_path / "copy.git", url, branch))


@pytest.mark.parametrize("make", [local, fetched])
async def test_a_repository_that_is_not_there_is_unavailable(make, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="docs: git"):
        await read(make(tmp_path / "missing"))


def test_links_are_derived_from_the_address_that_is_fetched() -> None:
    from pathlib import PurePosixPath

    repository = Repository(Path("x"), "https://git.example/team/docs.git")
    assert repository.link("c0ffee", PurePosixPath("a b.md")) == "https://git.example/team/docs/blob/c0ffee/a%20b.md"
    assert Repository(Path("x")).link("c0ffee", PurePosixPath("a.md")) == ""


async def test_the_token_is_in_no_argument_and_nothing_of_our_environment_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    spy = bin_folder / "git"
    spy.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/arguments\n/usr/bin/env >> {tmp_path}/environment\nexit 1\n',
        encoding="utf-8",
    )
    spy.chmod(0o755)
    monkeypatch.setattr(os, "defpath", str(bin_folder))
    monkeypatch.setenv("PLUMBLINE_SECRET", "of-ours")
    url = "https://127.0.0.1:1/docs.git"
    source = GitRepositorySource("docs", Repository(tmp_path / "copy.git", url, token="t0ken"))
    with pytest.raises(SourceUnavailable):
        await source.check()
    environment = (tmp_path / "environment").read_text()
    assert "t0ken" not in (tmp_path / "arguments").read_text()
    assert "of-ours" not in environment
    assert f"http.{url}.extraHeader" in environment


@pytest.mark.parametrize("source", [local, fetched])
async def test_a_repository_with_a_commit_is_found_well_without_a_copy_being_made(repository: Path, source) -> None:
    commit(repository, a_md="# A\n\nText.")
    await source(repository).check()
    assert not (repository.parent / "copy.git").exists()


@pytest.mark.parametrize("source", [local, fetched])
async def test_a_repository_that_is_not_there_is_found_missing(tmp_path: Path, source) -> None:
    with pytest.raises(SourceUnavailable):
        await source(tmp_path / "nowhere").check()


async def test_a_branch_that_is_not_there_is_found_missing(repository: Path) -> None:
    commit(repository, a_md="# A\n\nText.")
    with pytest.raises(SourceUnavailable):
        await fetched(repository, "elsewhere").check()
