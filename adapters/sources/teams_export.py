"""An export of Microsoft Teams: the archive, or its unpacked folder.

It contains `teams/teamsSettings.json`, a folder per team with `channels_ID.json`, `teamMembers_ID.json` and
`messages_ID.json`, and `users/usersList.json`. The fields are those of Graph, capitalised. Private chats are
ignored, and channels that are not listed are named.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasPath, Field

from adapters.microsoft_graph import GraphMessage
from adapters.section import Host
from adapters.sources.json_lines import Archive, messages_in, open_archive
from adapters.sources.section import FileSection
from adapters.sources.teams_channels import channel_of, document_of, is_standard
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut

NOT_LISTED = "The export has messages of this channel, but does not list it."


class _Exported(GraphMessage):
    channel_id: str | None = Field(None, validation_alias=AliasPath("channelIdentity", "channelId"))


class TeamsExportSource:
    """The threads of every channel in an export. Invalid messages are left out."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    async def documents(self) -> AsyncIterator[Document | LeftOut]:
        for document in await asyncio.to_thread(lambda: list(self._documents())):
            yield document

    def _documents(self) -> Iterator[Document | LeftOut]:
        with open_archive(self._path) as archive:
            teams = {str(row["id"]): row for row in _rows(archive, "teams/teamsSettings.json") if row.get("id")}
            if not teams:
                raise SourceUnavailable(f"{self._path} is not a Teams export: it has no teams/teamsSettings.json.")
            users = {
                str(row.get("id")): tuple(str(row[key]) for key in ("displayName", "mail") if row.get(key))
                for row in _rows(archive, "users/usersList.json")
            }
            for team_id, team in teams.items():
                yield from self._team(archive, team_id, team, users)
            yield from archive.left_out

    def _team(
        self, archive: Archive, team_id: str, team: dict[str, Any], users: dict[str, tuple[str, ...]]
    ) -> Iterator[Document | LeftOut]:
        members = [str(row.get("userId")) for row in _rows(archive, f"teams/{team_id}/teamMembers_{team_id}.json")]
        names = tuple(users[user] for user in sorted(members) if users.get(user))
        listed = _rows(archive, f"teams/{team_id}/channels_{team_id}.json")
        threads = self._threads(archive, f"teams/{team_id}/messages_{team_id}.json")
        for row in listed:
            # The export lacks the members of private channels, so only the channel is a reader.
            channel = channel_of(row, team, listed, members if is_standard(row) else (), names)
            of_channel = threads.pop(channel.id, {}).items()
            documents = (document_of(self.name, channel, root_id, messages) for root_id, messages in of_channel)
            yield from filter(None, documents)
        yield from (LeftOut(channel_id, NOT_LISTED) for channel_id in sorted(threads))

    def _threads(self, archive: Archive, file: str) -> defaultdict[str, defaultdict[str, list[GraphMessage]]]:
        """Return the messages by channel id and root id."""
        threads: defaultdict[str, defaultdict[str, list[GraphMessage]]] = defaultdict(lambda: defaultdict(list))
        for message in messages_in(_rows(archive, file), _Exported, archive.left_out, file):
            if message.channel_id:
                threads[message.channel_id][message.replyToId or message.id].append(message)
        return threads


def _rows(archive: Archive, file: str) -> list[dict[str, Any]]:
    return [_with_small_keys(row) for row in archive.rows(file)]


def _with_small_keys(value: Any) -> Any:
    """Rename `CreatedDateTime` to `createdDateTime`, at every depth, as in Graph."""
    if isinstance(value, dict):
        return {f"{key[:1].lower()}{key[1:]}": _with_small_keys(item) for key, item in value.items()}
    return [_with_small_keys(item) for item in value] if isinstance(value, list) else value


class TeamsExportSection(FileSection):
    kind: Literal["teams_export"]

    def open(self, host: Host) -> TeamsExportSource:
        return TeamsExportSource(self.name, self.path)
