"""A Slack export: the archive from an administrator, or its unpacked folder.

It contains `channels.json` (public), `groups.json` (private) and `users.json`, and a folder per channel with one file
of messages per day: https://slack.com/help/articles/220556107. Direct messages (`dms.json`, `mpims.json`) are
ignored, and other folders that belong to no listed channel are named.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from adapters.section import Host
from adapters.sources.chat_threads import ChatChannel
from adapters.sources.json_lines import Archive, messages_in, open_archive
from adapters.sources.section import FileSection
from adapters.sources.slack_channels import Message, SlackWorkspace, channel_of, document_of, names_of
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut

DIRECT = ("dms.json", "mpims.json")
MISREAD = ("cp437", "latin-1", "cp1252")  # encodings as which tools read names in UTF-8
NO_CHANNEL = "No channel in channels.json or groups.json has the name of this folder."


class SlackExportSource:
    """The threads of every channel in an export. Invalid messages are left out."""

    def __init__(self, name: str, path: Path, url: str = "") -> None:
        """Create the source.

        `url` is the workspace's address (`https://acme.slack.com`), which the export lacks; if empty, documents have no links.
        """
        self.name = name
        self._path = path
        self._url = url.rstrip("/")

    async def documents(self) -> AsyncIterator[Document | LeftOut]:
        for item in await asyncio.to_thread(lambda: list(self._items())):
            yield item

    def _items(self) -> Iterator[Document | LeftOut]:
        with open_archive(self._path) as archive:
            users = [*archive.rows("users.json"), *archive.rows("org_users.json")]
            public, private = archive.rows("channels.json"), archive.rows("groups.json")
            if not public and not private:
                raise SourceUnavailable(
                    f"{self._path} is not a Slack export: it has no channels.json and no groups.json."
                )
            people = {str(user.get("id")): names_of(user) for user in users if not user.get("is_bot")}
            channels = {str(row.get("id")): str(row.get("name")) for row in (*public, *private)}
            workspace = SlackWorkspace({user: names for user, names in people.items() if names}, channels, self._url)
            folders = _folders(archive, {str(row.get("name")) for row in (*public, *private)})
            for rows, is_private in ((public, False), (private, True)):
                for row in rows:
                    members, name = [*map(str, row.get("members") or ())], str(row.get("name") or "")
                    channel = channel_of(str(row.get("id") or ""), name, members, workspace, is_private=is_private)
                    yield from self._threads(archive, folders[name], channel, workspace)
            direct = {str(row.get(key)) for file in DIRECT for row in archive.rows(file) for key in ("id", "name")}
            yield from (LeftOut(folder, NO_CHANNEL) for folder in folders[""] if folder not in direct)
            yield from archive.left_out

    def _threads(
        self, archive: Archive, folders: list[str], channel: ChatChannel, workspace: SlackWorkspace
    ) -> Iterator[Document]:
        threads: defaultdict[str, list[Message]] = defaultdict(list)
        for file in chain.from_iterable(map(archive.files, folders)):
            for message in messages_in(archive.rows(file), Message, archive.left_out, file):
                threads[message.thread_ts or message.ts].append(message)
        documents = (document_of(self.name, channel, ts, each, workspace) for ts, each in threads.items())
        yield from filter(None, documents)


def _folders(archive: Archive, names: set[str]) -> defaultdict[str, list[str]]:
    """Return the folders of each channel by its name, and under "" those that belong to none.

    Some tools write the names of folders in another form: of Unicode, percent-encoded, or misread.
    """
    without = {_canonical(name): name for name in sorted(names - archive.folders)}
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for folder in sorted(archive.folders):
        folders[folder if folder in names else without.get(_canonical(folder), "")].append(folder)
    return folders


def _canonical(name: str) -> str:
    """Return a name in one form, whichever one a tool gave it."""
    name = unquote(name)
    for encoding in MISREAD:
        with suppress(UnicodeError):
            return unicodedata.normalize("NFC", name.encode(encoding).decode())
    return unicodedata.normalize("NFC", name)


class SlackExportSection(FileSection):
    """A Slack export. `url` is the workspace's address (`https://acme.slack.com`); if empty, threads have no links."""

    kind: Literal["slack_export"]
    url: str = ""

    def open(self, host: Host) -> SlackExportSource:
        return SlackExportSource(self.name, self.path, self.url)
