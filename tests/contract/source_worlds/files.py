"""Worlds of files that people write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.folder import FolderSource
from adapters.sources.past_incidents import PastIncidentSource
from core.model.conversation import PUBLIC


class FolderWorld:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pages"
        self.folder.mkdir()
        self.source = FolderSource("docs", self.folder)

    def write(self, key: str, text: str) -> None:
        (self.folder / f"{key}.md").write_text(f"# Page {key}\n\n{text}", encoding="utf-8")

    def remove(self, key: str) -> None:
        (self.folder / f"{key}.md").unlink()

    def hide(self, key: str) -> None:
        path = self.folder / f"{key}.md"
        path.write_text(f"---\nreaders: [channel:vault]\n---\n{path.read_text()}", encoding="utf-8")


class LinesWorld:
    """A file of JSON lines, written anew at every change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self._save()

    def remove(self, key: str) -> None:
        del self.rows[key]
        self._save()

    def _save(self) -> None:
        self.path.write_text("\n".join(json.dumps(row) for row in self.rows.values()), encoding="utf-8")


class ThreadsWorld(LinesWorld):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "threads.jsonl")
        self.source = ChatThreadSource("docs", self.path)

    def write(self, key: str, text: str) -> None:
        head = {
            "id": key,
            "channel": "ci-cd",
            "readers": [PUBLIC],
            "author": "Asha Brandt",
            "at": "2026-02-01T08:00:00Z",
        }
        self.rows[key] = head | {"text": text}
        self._save()

    def hide(self, key: str) -> None:
        self.rows[key]["readers"] = ["channel:vault"]
        self._save()


class IncidentsWorld(LinesWorld):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "incidents.jsonl")
        self.source = PastIncidentSource("docs", self.path)

    def write(self, key: str, text: str) -> None:
        times = {"started_at": "2025-05-01T08:00:00Z", "resolved_at": "2025-05-01T09:00:00Z"}
        what = {"id": key, "title": f"Incident {key}", "description": text, "service": "search"}
        self.rows[key] = what | times | {"severity": "warning", "owner": "storefront"}
        self._save()

    def hide(self, key: str) -> None:
        self.remove(key)
