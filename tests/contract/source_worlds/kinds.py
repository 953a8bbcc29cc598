"""Every kind of small world for the contract of knowledge sources: in each, documents come, change and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from tests.contract.source_worlds.exports import SlackExportWorld
from tests.contract.source_worlds.files import FolderWorld, IncidentsWorld, ThreadsWorld
from tests.contract.source_worlds.remote import (
    azure_wiki_world,
    confluence_world,
    notion_world,
    sharepoint_world,
    slack_world,
    teams_world,
)
from tests.contract.source_worlds.repository import GitWorld
from tests.contract.source_worlds.world import RemoteWorld, World


@asynccontextmanager
async def _at_once(world: World) -> AsyncIterator[World]:
    yield world


LOCAL: dict[str, Callable[[Path], World]] = {
    "folder": FolderWorld,
    "threads": ThreadsWorld,
    "incidents": IncidentsWorld,
    "slack export": SlackExportWorld,
    "git clone": lambda folder: GitWorld(folder, fetched=False),
    "git url": lambda folder: GitWorld(folder, fetched=True),
}
REMOTE: dict[str, Callable[[], AbstractAsyncContextManager[RemoteWorld]]] = {
    "confluence cloud": lambda: confluence_world(cloud=True),
    "confluence data center": lambda: confluence_world(cloud=False),
    "azure wiki": azure_wiki_world,
    "slack": slack_world,
    "teams": teams_world,
    "notion": notion_world,
    "sharepoint files": sharepoint_world,
    "sharepoint pages": lambda: sharepoint_world(pages=True),
}

MARKDOWN, HTML = "~~{}~~", "<s>{}</s>"
STRUCK = {
    **dict.fromkeys(("folder", "threads", "incidents", "git clone", "git url", "azure wiki", "notion"), MARKDOWN),
    **dict.fromkeys(("confluence cloud", "confluence data center", "teams", "sharepoint pages"), HTML),
    **dict.fromkeys(("slack export", "slack"), "~{}~"),
    "sharepoint files": MARKDOWN,
}
"""How each kind of world strikes text out."""


def world(kind: str, folder: Path) -> AbstractAsyncContextManager[World]:
    return REMOTE[kind]() if kind in REMOTE else _at_once(LOCAL[kind](folder))
