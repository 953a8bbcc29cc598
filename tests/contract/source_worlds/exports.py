"""Worlds of archives that are exported anew at every change."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from adapters.sources.slack_history import SlackExportSource
from adapters.sources.teams_history import TeamsExportSource
from tests.contract.source_worlds.world import CHANNEL, HIDDEN_CHANNEL, TEAM, TEAMS_CHANNEL


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


class TeamsExportWorld:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "export"
        self.messages: dict[str, tuple[str, str]] = {}
        self.source = TeamsExportSource("docs", self.folder)
        self._save()

    def write(self, key: str, text: str) -> None:
        self.messages[key] = (TEAMS_CHANNEL, text)
        self._save()

    def remove(self, key: str) -> None:
        del self.messages[key]
        self._save()

    def hide(self, key: str) -> None:
        self.messages[key] = (HIDDEN_CHANNEL, self.messages[key][1])
        self._save()

    def _save(self) -> None:
        channels = [
            {"Id": TEAMS_CHANNEL, "DisplayName": "ci-cd", "MembershipType": "standard"},
            {"Id": HIDDEN_CHANNEL, "DisplayName": "hidden", "MembershipType": "private"},
        ]
        rows = [
            {
                "Id": f"17699{key}0000000",
                "Body": {"ContentType": "html", "Content": f"<p>{text}</p>"},
                "CreatedDateTime": "2026-02-01T13:03:39.181+00:00",
                "DeletedDateTime": None,
                "ReplyToId": None,
                "MessageType": "message",
                "From": {"Application": None, "User": {"Id": "u-1", "DisplayName": "Asha Brandt"}},
                "ChannelIdentity": {"ChannelId": channel, "TeamId": TEAM},
            }
            for key, (channel, text) in self.messages.items()
        ]
        files = {
            "teams/teamsSettings.json": [{"Id": TEAM, "DisplayName": "CI", "Visibility": "public"}],
            f"teams/{TEAM}/channels_{TEAM}.json": channels,
            f"teams/{TEAM}/teamMembers_{TEAM}.json": [{"UserId": "u-1"}],
            f"teams/{TEAM}/messages_{TEAM}.json": rows,
            "users/usersList.json": [{"Id": "u-1", "DisplayName": "Asha Brandt", "Mail": "asha@marigold.example"}],
        }
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content), encoding="utf-8")
