"""The world of an archive that is exported anew at every change."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from adapters.sources.slack_history import SlackExportSource
from tests.contract.source_worlds.world import CHANNEL


class SlackExportWorld:
    """An archive that is exported anew at every change."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "export.zip"
        self.days: dict[str, dict[str, str]] = {"ci-cd": {}, "vault": {}}
        self.source = SlackExportSource("docs", self.path, "https://marigold.slack.example")
        self._save()

    def write(self, key: str, text: str) -> None:
        self.days["ci-cd"][key] = text
        self._save()

    def remove(self, key: str) -> None:
        del self.days["ci-cd"][key]
        self._save()

    def hide(self, key: str) -> None:
        self.days["vault"][key] = self.days["ci-cd"].pop(key)
        self._save()

    def _save(self) -> None:
        with zipfile.ZipFile(self.path, "w") as archive:
            members = {"members": ["U1"], "is_archived": False}
            archive.writestr("channels.json", json.dumps([{"id": CHANNEL, "name": "ci-cd"} | members]))
            archive.writestr("groups.json", json.dumps([{"id": "C0VAULT", "name": "vault"} | members]))
            archive.writestr("users.json", json.dumps([{"id": "U1", "name": "asha", "real_name": "Asha Brandt"}]))
            for channel, messages in self.days.items():
                rows = [
                    {"type": "message", "user": "U1", "ts": f"17699{key}0000.000100", "text": text}
                    for key, text in messages.items()
                ]
                archive.writestr(f"{channel}/2026-02-01.json", json.dumps(rows))
