"""Threads of any chat, of which a message with all its replies, in order, is one document; and threads from a file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from adapters.http import Moment
from adapters.section import Host
from adapters.sources.section import FileSection, records
from core.knowledge.clean_text import without_struck
from core.model.document import Document, DocumentKind
from core.model.text import thread_text, thread_urls
from core.ports import LeftOut

FAMILY = "chat"
CLOCK_SKEW = timedelta(minutes=10)  # maximum lead of our clock over a chat's
MAX_MEMBERS = 200  # of a channel or group listed as readers; of a larger one, only channels are readers
MAX_TITLE = 90  # characters of the message in the title of its thread

_CUT_OFF = re.compile(r"(?: |(?<=[/?&#]))[^ /?&#]*$|^[^ /?&#]*$")


People = tuple[tuple[str, ...], ...]
"""The names of each person."""


@dataclass(frozen=True, slots=True)
class ChatChannel:
    """A channel of a chat. `readers` may read it; `members` are the names of those who are in it."""

    id: str
    name: str
    readers: frozenset[str]
    members: People = ()


@dataclass(frozen=True, slots=True)
class ThreadMessage:
    """A message as people see it. `text` is None if it is deleted or withheld, or reports an event.

    `people` are those who wrote it or are mentioned in it.
    """

    id: str
    text: str | None
    sent_at: datetime
    url: str = ""
    subject: str = ""
    changed_at: datetime | None = None
    is_by_bot: bool = False
    people: People = ()


def thread_document(
    source: str, channel: ChatChannel, thread_id: str, messages: Iterable[ThreadMessage]
) -> Document | None:
    """Return the document of the message with the id of the thread and its replies; None if they have no text.

    A message of a bot begins a document only if a person replied. If the first message is missing or not shown, the first
    reply stands in its place.
    """
    by_id = {message.id: message for message in messages}
    ordered = sorted(by_id.values(), key=lambda each: (each.id != thread_id, each.sent_at))
    shown = [message for message in ordered if message.text is not None]
    if all(message.is_by_bot for message in shown):
        return None
    root, *replies = shown
    opening, answers = root.text or "", [(reply.text, reply.url) for reply in replies if reply.text]
    if not opening and not answers:
        return None
    members = {*channel.members, *((names[0],) for names in channel.members)}
    others = {names for message in shown for names in message.people} - members
    return Document(
        id=f"{source}/{channel.id}/{thread_id}",
        source=source,
        family=FAMILY,
        title=_title(channel.name, root.subject or opening or answers[0][0]),
        text=thread_text(opening, [text for text, _ in answers]),
        kind=DocumentKind.THREAD,
        url=root.url,
        part_urls=thread_urls(opening, root.url, answers),
        updated_at=max(message.changed_at or message.sent_at for message in shown),
        readers=channel.readers,
        people=(*channel.members, *sorted(others)),
    )


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
            if document := self._document(thread, people):
                yield document
        for each in left_out:
            yield each

    def _document(self, thread: _Thread, people: People) -> Document | None:
        root, *replies = (
            ThreadMessage(str(number), without_struck(each.text), each.at, thread.url)
            for number, each in enumerate((thread, *thread.replies))
        )
        channel = ChatChannel("", thread.channel, frozenset(thread.readers), people)
        document = thread_document(self.name, channel, root.id, (root, *replies))
        return document and replace(document, id=f"{self.name}/{thread.id}", part_urls=())


def _title(channel: str, message: str) -> str:
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
