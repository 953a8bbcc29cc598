"""The FileReader of Microsoft Teams: text files that a person sends to the bot in a personal chat.

https://learn.microsoft.com/microsoftteams/platform/bots/how-to/bots-filesv4
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
from yarl import URL

from adapters.shared_files import MAX_FILES, is_text, text_of_file
from core.model.conversation import SharedFile
from core.model.errors import ChatUnavailable

DOWNLOAD = "application/vnd.microsoft.teams.file.download.info"
HOSTS = (".sharepoint.com", ".sharepoint.us", ".sharepoint-mil.us")
MAX_NAME = 80  # characters


class TeamsFiles:
    """Implements `core.ports.FileReader`. Teams gives each file an address that needs no token and expires."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def text(self, file: SharedFile) -> str:
        if not is_sharepoint(file.url):
            raise ChatUnavailable("it is not on SharePoint")
        return await text_of_file(self._session, file)


def is_sharepoint(address: str) -> bool:
    """Return whether this is the address of a file on SharePoint, and of no other host that the bot could be led to."""
    try:
        url = URL(address)
    except ValueError:
        return False
    return url.scheme == "https" and url.port == 443 and (url.host or "").endswith(HOSTS)


def shared_files(attachments: tuple[Any, ...]) -> tuple[SharedFile, ...]:
    """Return the text files among the attachments of a message. Untrusted."""
    return tuple(_texts(attachments))[:MAX_FILES]


def _texts(attachments: tuple[Any, ...]) -> Iterator[SharedFile]:
    for each in attachments:
        if not isinstance(each, dict) or each.get("contentType") != DOWNLOAD:
            continue
        name, content = each.get("name"), each.get("content")
        url = content.get("downloadUrl") if isinstance(content, dict) else None
        if isinstance(name, str) and isinstance(url, str) and is_text(name):
            yield SharedFile(name[:MAX_NAME], url)
