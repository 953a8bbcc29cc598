"""A Slack export: the archive from an administrator, or its unpacked folder.

It contains `channels.json` (public), `groups.json` (private) and `users.json`, and a folder per channel with one file
of messages per day: https://slack.com/help/articles/220556107. Direct messages (`dms.json`, `mpims.json`) and unlisted
folders are ignored.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Literal

from adapters.section import Host
from adapters.sources.archive import Archive, open_archive
from adapters.sources.json_lines import messages_in
from adapters.sources.section import FileSection
from adapters.sources.slack_channels import names_of
from adapters.sources.slack_messages import Directory, Message, SlackChannel, thread_document
from core.model.document import Document
from core.model.errors import SourceUnavailable


class SlackExportSource:
    """The threads of every channel in an export. Invalid messages are logged and left out."""

    def __init__(self, name: str, path: Path, url: str = "") -> None:
        """Create the source.

        `url` is the workspace's address (`https://acme.slack.com`), which the export lacks; if empty, documents have no links.
        """
        self.name = name
        self._path = path
        self._url = url.rstrip("/")

    async def documents(self) -> AsyncIterator[Document]:
        for channel_documents in await asyncio.to_thread(lambda: list(self._channels())):
            for document in channel_documents:
                yield document

    def _channels(self) -> Iterable[list[Document]]:
        with open_archive(self._path) as archive:
            users = [*archive.rows("users.json"), *archive.rows("org_users.json")]
            public, private = archive.rows("channels.json"), archive.rows("groups.json")
            if not public and not private:
                raise SourceUnavailable(
                    f"{self._path} is not a Slack export: it has no channels.json and no groups.json."
                )
            people = {str(user.get("id")): names_of(user) for user in users if not user.get("is_bot")}
            directory = Directory(
                {user: names for user, names in people.items() if names},
                {str(row.get("id")): str(row.get("name")) for row in (*public, *private)},
            )
            for rows, is_private in ((public, False), (private, True)):
                for row in rows:
                    channel = self._channel(row, private=is_private)
                    yield self._threads(archive, channel, directory)

    def _channel(self, row: dict[str, Any], *, private: bool) -> SlackChannel:
        channel_id, name = str(row.get("id") or ""), str(row.get("name") or "")
        members = tuple(sorted(map(str, row.get("members") or ())))
        archive = f"{self._url}/archives/{channel_id}" if self._url else ""
        return SlackChannel(channel_id, name, private, members, archive)

    def _threads(self, archive: Archive, channel: SlackChannel, directory: Directory) -> list[Document]:
        threads: defaultdict[str, list[Message]] = defaultdict(list)
        for file in archive.files(channel.name):
            for message in messages_in(archive.rows(file), Message, file=file):
                threads[message.thread_ts or message.ts].append(message)
        documents = (thread_document(self.name, channel, _counted(ts, each), directory) for ts, each in threads.items())
        return [document for document in documents if document]


def _counted(root: str, messages: list[Message]) -> list[Message]:
    """Return a thread with its root and number of replies. Partial exports may lack the root, older ones the number."""
    if all(message.ts != root for message in messages):
        return []
    replies = len(messages) - 1
    return [each.model_copy(update={"reply_count": replies}) if each.ts == root else each for each in messages]


class SlackExportSection(FileSection):
    """A Slack export. `url` is the workspace's address (`https://acme.slack.com`); if empty, threads have no links."""

    kind: Literal["slack_export"]
    url: str = ""

    def open(self, host: Host) -> SlackExportSource:
        return SlackExportSource(self.name, self.path, self.url)
