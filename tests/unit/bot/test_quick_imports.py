"""A bot is soon ready again: it loads nothing that it may never need."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bot.quick_imports import quick_imports

NEEDED_LATER = {
    *(
        "bs4",
        "markdownify",
        "mammoth",
        "pypdf",
        "jsonpath",
        "tree_sitter",
        "scipy",
        "sklearn",
        "mcp",
        "slack_sdk",
    ),
    *("slack_bolt", "botbuilder", "qdrant_client", "opentelemetry.sdk"),
    *("requests", "cryptography"),
}
LOADED = """
import json, sys
import bot.cli, bot.commands.commands, bot.server
import adapters.teams.inbound, adapters.teams.messenger, adapters.teams.messenger
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture
def collecting_after() -> Iterator[None]:
    """Garbage of other tests is looked for again, whatever this one did."""
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.external  # a process imports the whole bot
def test_a_bot_starts_without_what_few_workspaces_or_no_start_need() -> None:
    found = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = set(json.loads(found.stdout))
    assert "bot.server" in loaded
    assert not NEEDED_LATER & loaded


@pytest.mark.usefixtures("collecting_after")
def test_what_is_loaded_is_not_looked_through_meanwhile_nor_afterwards() -> None:
    with quick_imports():
        assert not gc.isenabled()
        kept = [list[int]() for _ in range(100)]
    assert gc.isenabled()
    assert not any(found is kept for found in gc.get_objects())


@pytest.mark.usefixtures("collecting_after")
def test_garbage_is_looked_for_again_after_something_could_not_be_loaded() -> None:
    with pytest.raises(ModuleNotFoundError), quick_imports():
        raise ModuleNotFoundError
    assert gc.isenabled()
