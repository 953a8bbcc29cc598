"""Chat threads from a file: a message with all its replies, in order, is one document."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from adapters.sources.json_lines import objects, skip
from core.errors import MalformedInput
from core.knowledge.document import Document, DocumentKind

FAMILY = "chat"
MAX_TITLE = 90  # characters of the message that name its thread


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True)

    author: str
    at: AwareDatetime
    text: str


class _Thread(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    channel: str
    readers: list[str]
    url: str = ""
    author: str
    at: AwareDatetime
    text: str
    replies: list[_Reply] = []


class ChatThreadSource:
    """A JSON-lines file of threads. A line that cannot be understood is logged and left out."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    @property
    def name(self) -> str:
        return self._name

    async def documents(self) -> AsyncIterator[Document]:
        for number, value in objects(self._path):
            try:
                yield self._document(value)
            except MalformedInput as error:
                skip(self._path, number, error)

    def _document(self, value: dict[str, Any]) -> Document:
        try:
            thread = _Thread.model_validate(value)
        except ValidationError as error:
            raise MalformedInput(f"The thread lacks something: {_first(error)}.") from error
        if not thread.readers:
            raise MalformedInput("`readers` names nobody.")
        replies = sorted(thread.replies, key=lambda reply: reply.at)
        return Document(
            id=f"{self._name}/{thread.id}",
            source=self._name,
            family=FAMILY,
            title=_title(thread),
            text=thread_text(thread.text, [reply.text for reply in replies]),
            kind=DocumentKind.THREAD,
            url=thread.url,
            updated_at=_latest(thread, replies),
            readers=frozenset(thread.readers),
        )


def thread_text(message: str, replies: list[str]) -> str:
    """A message and its replies with the prefixes that say which is which (Ericsson chatbot, section V-A)."""
    if not replies:
        return f"Message: {message.strip()}"
    answered = "\n\n".join(reply.strip() for reply in replies)
    return f"Message: {message.strip()}\n\nThis message has the following responses:\n\n{answered}"


def _title(thread: _Thread) -> str:
    line = " ".join(thread.text.split())
    shortened = line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1].rsplit(' ', 1)[0]}…"
    return f"#{thread.channel}: {shortened}"


def _latest(thread: _Thread, replies: list[_Reply]) -> datetime:
    return replies[-1].at if replies else thread.at


def _first(error: ValidationError) -> str:
    detail = error.errors()[0]
    return f"`{'.'.join(map(str, detail['loc']))}`: {detail['msg']}"
