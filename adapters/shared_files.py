"""Text files that people share in chats: which of them are read, and how they are fetched."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from yarl import URL

from core.model.conversation import SharedFile, cut_message
from core.model.errors import ChatUnavailable

MAX_FILES = 3  # of one message
MAX_BYTES = 2 * 1024 * 1024  # read of one file
TIMEOUT = aiohttp.ClientTimeout(total=20)
TEXT_ENDINGS = frozenset(
    "conf cfg csv env err go ini java js json jsonl log md out properties py rb rs sh sql text toml trace ts txt xml yaml yml".split()
)


def is_text(name: str) -> bool:
    """Return whether a file is text, by the ending of its name."""
    return name.rpartition(".")[2].lower() in TEXT_ENDINGS


async def text_of_file(
    session: aiohttp.ClientSession, file: SharedFile, headers: Mapping[str, str] | None = None
) -> str:
    """Return the beginning and the end of a file's text, MAX_MESSAGE characters at most.

    Follows no redirect, so that no other host receives `headers`. Of a file larger than MAX_BYTES, the rest is not read.
    Raises ChatUnavailable.
    """
    content = bytearray()
    try:
        async with session.get(
            URL(file.url, encoded=True), headers=headers, allow_redirects=False, timeout=TIMEOUT
        ) as response:
            if response.status != 200 or response.content_type == "text/html":  # a page to sign in
                raise ChatUnavailable("the chat does not let me read it")
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) >= MAX_BYTES:
                    break
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ChatUnavailable("the chat did not send it in time") from error
    if b"\0" in content:
        raise ChatUnavailable("it is not text")
    return cut_message(content[:MAX_BYTES].decode("utf-8", "replace"))
