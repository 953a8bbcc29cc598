"""Commits as changes, from checkouts made by git."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.tools.code_repository import GitHistory
from core.model.errors import ToolUnavailable
from core.ports import TimeWindow
from tests.fakes.checkout import commit, git

START = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)
HOUR = TimeWindow(START, START + timedelta(hours=1))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "api"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


async def test_the_commits_within_the_window_are_changes_oldest_first(checkout: Path) -> None:
    commit(checkout, -1, "Before", "a")
    commit(checkout, 0, "Smaller pool\n\nFrom 40 to 4.", "shop/pool.py", "shop/ünï code.py")
    commit(checkout, 59, "Last", "b")
    commit(checkout, 60, "After", "c")
    first, last = await GitHistory("git", {"api": checkout}).changes(HOUR)
    assert (first.kind, first.service, first.author, first.at) == ("commit", "api", "Asha", START)
    assert (first.title, first.detail) == ("Smaller pool", "From 40 to 4.")
    assert first.files == ("shop/pool.py", "shop/ünï code.py")
    assert last.title == "Last"


async def test_a_checkout_cannot_make_us_run_its_programs(checkout: Path, tmp_path: Path) -> None:
    commit(checkout, 1, "Innocent", "a")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    for key in ("core.pager", "core.fsmonitor", "gpg.program", "diff.external"):
        git(checkout, "config", key, str(trap))
    git(checkout, "config", "log.showSignature", "true")
    assert len(await GitHistory("git", {"api": checkout}).changes(HOUR)) == 1
    assert not (tmp_path / "sprung").exists()


async def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolUnavailable, match=r"git log of .* failed"):
        await GitHistory("git", {"api": tmp_path}).changes(HOUR)


async def test_a_machine_without_git_is_told_so(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "defpath", str(checkout))
    with pytest.raises(ToolUnavailable, match="git cannot be started"):
        await GitHistory("git", {"api": checkout}).changes(HOUR)


async def test_a_commit_to_a_shared_checkout_touches_the_services_whose_folders_it_changes(checkout: Path) -> None:
    commit(checkout, 1, "One", "services/cart/pool.py")
    commit(checkout, 2, "Both", "services/cart/a.py", "services/login/b.py")
    commit(checkout, 3, "Library", "libs/retry/policy.py")
    for service in ("cart", "login"):
        (checkout / "services" / service).mkdir(parents=True, exist_ok=True)
    folders = {service: checkout / "services" / service for service in ("cart", "login")}
    found = await GitHistory("git", folders).changes(HOUR)
    assert [(change.title, change.touched) for change in found] == [
        ("One", ("cart",)),
        ("Both", ("cart", "login")),
        ("Library", ()),
    ]


async def test_a_commit_brings_its_diff_but_not_that_of_generated_files(checkout: Path) -> None:
    commit(checkout, 1, "size = 40", "pool.py", "package-lock.json")
    commit(checkout, 2, "size = 4", "pool.py", "package-lock.json")
    _, last = await GitHistory("git", {"api": checkout}).changes(HOUR)
    assert "-size = 40" in last.diff
    assert "+size = 4" in last.diff
    assert "package-lock" not in last.diff
    assert last.revision.startswith(last.id)
