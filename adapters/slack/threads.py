"""The ThreadReader and the FileReader of Slack: threads, and the text files that Slack makes of long pastes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from adapters.shared_files import MAX_FILES, is_text, text_of_file
from adapters.slack.client import BotIdentity, call, error_code, pages
from adapters.slack.message_text import Content
from adapters.slack.mrkdwn import plain_text
from core.model.conversation import MessageReference, Place, SharedFile, Speaker, Turn
from core.model.errors import ChatUnavailable, MessageNotFound

PAGE = 1_000  # messages per request; the maximum of Slack
MAX_PAGES = 20  # of a thread; of a longer one, its end is read too, and its middle is missing
END = 86_400.0  # seconds that the end of a longer thread covers

log = structlog.get_logger()


class SlackThreads:
    """Implements `core.ports.ThreadReader`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._identity = BotIdentity(client)

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        if place.thread is None:
            return ()
        bot = await self._identity.user_id()
        try:
            messages = await self._messages(place.channel, place.thread, before.timestamp())
        except MessageNotFound:
            return ()
        turns = [message for message in messages if float(message["ts"]) < before.timestamp() and _text_of(message)]
        chosen = turns if len(turns) <= limit else [turns[0], *turns[len(turns) - limit + 1 :]]
        return tuple(
            Turn(
                Speaker.PLUMBLINE if message.get("user") == bot else Speaker.PERSON,
                plain_text(_text_of(message), bot),
            )
            for message in chosen
        )

    async def _messages(self, channel: str, thread: str, before: float) -> list[dict[str, Any]]:
        """Return the thread's messages, oldest first; of one that is too long, its beginning and its end."""
        options = {"channel": channel, "ts": thread, "limit": PAGE}
        read = [page async for page in pages(self._client, "conversations.replies", options, MAX_PAGES)]
        if (read[-1].get("response_metadata") or {}).get("next_cursor"):
            log.warning("thread read in part", channel=channel, thread=thread, missing="its middle")
            end = options | {"oldest": f"{before - END:.6f}"}
            read += [page async for page in pages(self._client, "conversations.replies", end, MAX_PAGES)]
        # Slack begins every list with the first message of the thread.
        return list({message["ts"]: message for page in read for message in page.get("messages", ())}.values())


def _text_of(message: dict[str, Any]) -> str:
    """Return the text of a message; empty if it was deleted."""
    return "" if message.get("subtype") == "tombstone" else Content.model_validate(message).seen


NOT_OURS = frozenset({"cant_delete_file", "file_deleted", "file_not_found"})  # nothing is left to delete
PAGE_OF_FILES = 200  # messages of a thread searched for a file


class ThreadFiles:
    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client

    async def attach(self, reference: MessageReference, name: str, content: bytes, title: str, alt_text: str) -> None:
        """Add a file to the message's thread."""
        try:
            await call(
                "files.upload",
                self._client.files_upload_v2(
                    channel=reference.place.channel,
                    thread_ts=reference.place.thread or reference.message_id,
                    content=content,
                    filename=name,
                    title=title,
                    alt_txt=alt_text,
                ),
            )
        except (ChatUnavailable, MessageNotFound, SlackRequestError) as error:
            log.warning("message without its file", file=name, reason=str(error))

    async def detach(self, reference: MessageReference, name: str) -> None:
        """Delete the file with this name from the message's thread. Raises ChatUnavailable."""
        thread = reference.place.thread or reference.message_id
        try:
            page = await call(
                "conversations.replies",
                self._client.conversations_replies(channel=reference.place.channel, ts=thread, limit=PAGE_OF_FILES),
            )
        except MessageNotFound:
            return
        files = [file for message in page.get("messages", ()) for file in message.get("files") or ()]
        for file in files:
            if file.get("name") == name:
                await self._delete(file["id"])

    async def _delete(self, file_id: str) -> None:
        try:
            await call("files.delete", self._client.files_delete(file=file_id))
        except ChatUnavailable as error:
            if error_code(error) not in NOT_OURS:
                raise


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
