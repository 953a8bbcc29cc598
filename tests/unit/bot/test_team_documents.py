from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.config.workspace import Workspace, current_teams, load_workspace


@pytest.fixture
def document(tmp_path: Path) -> Path:
    document = tmp_path / "payments.md"
    document.write_text("Charges.", encoding="utf-8")
    return document


@pytest.fixture
def workspace(document: Path) -> Workspace:
    teams = "teams:\n  - {id: payments, name: Payments, document: payments.md}\n  - {id: fleet, name: Fleet}\n"
    (document.parent / "plumbline.yaml").write_text(teams, encoding="utf-8")
    return load_workspace(document.parent / "plumbline.yaml")


def test_a_document_is_what_its_file_says_now(workspace: Workspace, document: Path) -> None:
    document.write_text("Charges and refunds.", encoding="utf-8")
    payments, fleet = asyncio.run(current_teams(workspace))
    assert (payments.document, fleet) == ("Charges and refunds.", workspace.teams[1])


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_bytes(b"\xff\xfe")])
def test_one_that_cannot_be_read_any_more_counts_as_it_was_at_the_start(
    workspace: Workspace, document: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(document)
    assert asyncio.run(current_teams(workspace)) == workspace.teams
