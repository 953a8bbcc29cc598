"""The FileReader of Slack: snippets and text files, which Slack makes of long pastes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
from yarl import URL

from adapters.shared_files import MAX_FILES, is_text, text_of_file
from core.model.conversation import SharedFile
from core.model.errors import ChatUnavailable

MAX_NAME = 80  # characters


class SlackFiles:
    """Implements `core.ports.FileReader`. Needs the scope `files:read`."""

    def __init__(self, session: aiohttp.ClientSession, bot_token: str, api_url: str) -> None:
        self._session = session
        self._headers = {"Authorization": f"Bearer {bot_token}"}
        self._api = URL(api_url)

    async def text(self, file: SharedFile) -> str:
        if not self._is_slack_s(file.url):
            raise ChatUnavailable("it is not on Slack")
        return await text_of_file(self._session, file, self._headers)

    def _is_slack_s(self, address: str) -> bool:
        """Return whether the token may be sent to this address: `files.slack.com` beside `slack.com/api`."""
        try:
            url = URL(address)
        except ValueError:
            return False
        host, own = url.host or "", self._api.host or ""
        is_own = host == own or host.endswith(f".{own}")
        return is_own and (url.scheme, url.port) == (self._api.scheme, self._api.port)


def shared_files(files: Any) -> tuple[SharedFile, ...]:
    """Return the text files among the `files` of a message. Untrusted."""
    return tuple(_texts(files))[:MAX_FILES] if isinstance(files, list) else ()


def _texts(files: list[Any]) -> Iterator[SharedFile]:
    for each in files:
        if not isinstance(each, dict):
            continue
        name, url = each.get("name"), each.get("url_private_download") or each.get("url_private")
        if isinstance(name, str) and isinstance(url, str) and (each.get("mode") == "snippet" or is_text(name)):
            yield SharedFile(name[:MAX_NAME], url)
