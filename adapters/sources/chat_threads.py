"""Chat threads from a file: a message with all its replies, in order, is one document."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from adapters.edge import Moment
from adapters.section import Host
from adapters.sources.json_lines import records
from adapters.sources.section import FileSection
from core.knowledge.clean_text import without_struck
from core.model.document import Document, DocumentKind
from core.model.text import thread_text
from core.ports import LeftOut

FAMILY = "chat"
MAX_TITLE = 90  # characters of the message in the title of its thread

_CUT_OFF = re.compile(r"(?: |(?<=[/?&#]))[^ /?&#]*$|^[^ /?&#]*$")


class _Reply(BaseModel, frozen=True):
    author: str
    at: Moment
    text: str


class _Thread(BaseModel, frozen=True):
    id: str
    channel: str
    readers: Annotated[list[str], Field(min_length=1)]
    url: str = ""
    author: str
    at: Moment
    text: str
    replies: list[_Reply] = []


class ChatThreadSource:
    """A JSON lines file of threads. Invalid lines are left out."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    async def documents(self) -> AsyncIterator[Document | LeftOut]:
        left_out = list[LeftOut]()
        threads = list(records(self._path, _Thread, left_out))
        # Every author in the file may be mentioned anywhere in it.
        authors = {each.author for thread in threads for each in (thread, *thread.replies)}
        people = tuple((name,) for name in sorted(authors))
        for thread in threads:
            yield self._document(thread, people)
        for each in left_out:
            yield each

    def _document(self, thread: _Thread, people: tuple[tuple[str, ...], ...]) -> Document:
        replies = sorted(thread.replies, key=lambda reply: reply.at)
        return Document(
            id=f"{self.name}/{thread.id}",
            source=self.name,
            family=FAMILY,
            title=thread_title(thread.channel, without_struck(thread.text)),
            text=thread_text(without_struck(thread.text), [without_struck(reply.text) for reply in replies]),
            kind=DocumentKind.THREAD,
            url=thread.url,
            updated_at=replies[-1].at if replies else thread.at,
            readers=frozenset(thread.readers),
            people=people,
        )


def thread_title(channel: str, message: str) -> str:
    """Return the channel and the beginning of the message, cut between words or between the parts of a long address.

    A cut within a word could split a password, whose rest would not be recognised as one.
    """
    line = " ".join(message.split())
    shortened = line if len(line) <= MAX_TITLE else f"{_CUT_OFF.sub('', line[: MAX_TITLE - 1])}…"
    return f"#{channel}: {shortened}"


class ChatThreadsSection(FileSection):
    has_pages: ClassVar[bool] = False

    kind: Literal["chat_threads"]

    def open(self, host: Host) -> ChatThreadSource:
        return ChatThreadSource(self.name, self.path)
