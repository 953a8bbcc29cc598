"""Files in a message's thread: the diagram of an alarm, and the full text of an answer that is too long.

Files are optional: if Slack refuses one, the message stays.
"""

from __future__ import annotations

import structlog
from slack_sdk.errors import SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call, error_code
from core.model.conversation import MessageReference
from core.model.errors import ChatUnavailable, MessageNotFound

NOT_OURS = frozenset({"cant_delete_file", "file_deleted", "file_not_found"})  # nothing is left to delete
PAGE = 200  # messages of a thread searched for a file

log = structlog.get_logger()


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
                self._client.conversations_replies(channel=reference.place.channel, ts=thread, limit=PAGE),
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
