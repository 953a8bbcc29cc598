"""Conversion of Slack threads to documents, for the Web API and exports.

https://docs.slack.dev/messaging/formatting-message-text/ · https://docs.slack.dev/reference/events/message/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from adapters.slack.message_text import Content
from adapters.sources.chat_threads import FAMILY, thread_title
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.layout import thread_text, thread_urls

MAX_MEMBERS = 200  # of a private channel listed as readers; in a larger one, only the channel is a reader

_SPOKEN = frozenset({None, "thread_broadcast", "file_share", "me_message", "bot_message"})
"""Subtypes of messages with content; the others report joins, topics, deletions and similar events."""

_CODE = re.compile(r"\n?```\n?(.*?)\n?```\n?|```", re.DOTALL)
_MENTION = re.compile(r"<@([A-Z0-9]+)")
_REFERENCE = re.compile(r"<([^<>\s|]+)(?:\|([^<>]*))?>")


Timestamp = Annotated[str, Field(pattern=r"^\d{1,11}\.\d{1,9}$")]
"""Seconds since 1970, within the range of dates."""


class _Edited(BaseModel):
    model_config = ConfigDict(frozen=True)

    ts: Timestamp


class Message(Content):
    """A message. `ts` is its id within the channel, and its time in seconds."""

    ts: Timestamp
    user: str | None = None
    subtype: str | None = None
    thread_ts: Timestamp | None = None
    reply_count: int = 0
    latest_reply: Timestamp | None = None
    edited: _Edited | None = None
    bot_id: str | None = None
    hidden: bool = False

    @property
    def active_at(self) -> float:
        """Return when it was last posted, edited or replied to, in seconds. Edits of replies are not included."""
        return max(map(float, (self.ts, self.latest_reply or "0", self.edited.ts if self.edited else "0")))

    @property
    def is_said(self) -> bool:
        return self.subtype in _SPOKEN and not self.hidden

    @property
    def is_thread(self) -> bool:
        """Return whether it can begin a document.

        A bot's message can only if somebody replied, and so can one that is deleted, or that reports an event.
        """
        is_root = self.thread_ts in (None, self.ts)
        is_by_bot = self.bot_id is not None or self.subtype == "bot_message"
        return is_root and (self.reply_count > 0 or (self.is_said and not is_by_bot))


@dataclass(frozen=True, slots=True)
class Directory:
    """The names of `people` by user id (displayed name first), and of `channels`."""

    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    channels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """A channel. `members` are user ids; `archive` is the address to which a message's path is appended."""

    id: str
    name: str
    private: bool
    members: tuple[str, ...]
    archive: str = ""

    def url_of(self, message: Message, root: Message) -> str:
        """Return the permalink of a message in the thread of `root`; empty if the workspace's address is unknown.

        https://docs.slack.dev/reference/methods/chat.getPermalink
        """
        if not self.archive:
            return ""
        url = f"{self.archive}/p{message.ts.replace('.', '')}"
        return url if message.ts == root.ts else f"{url}?thread_ts={root.ts}&cid={self.id}"

    @property
    def readers(self) -> frozenset[str]:
        """Return everybody in the workspace, or the channel and its members."""
        here = f"channel:slack:{self.id}"
        if not self.private:
            return frozenset({PUBLIC, here})
        people = self.members if len(self.members) <= MAX_MEMBERS else ()
        return frozenset({here, *(f"person:slack:{member}" for member in people)})


def text_of(message: Message, directory: Directory) -> str:
    """Return the text with names for ids. Files appear by name."""
    return _with_fences(unescape(_REFERENCE.sub(lambda match: _named(match, directory), message.seen))).strip()


def _with_fences(text: str) -> str:
    """Put code fences on lines of their own, as Markdown requires. Unclosed fences are left alone."""
    return _CODE.sub(lambda match: "" if match[1] is None else f"\n```\n{match[1]}\n```\n", text)


def thread_document(
    source: str, channel: SlackChannel, messages: Iterable[Message], directory: Directory
) -> Document | None:
    """Return the document of a thread: its message and the replies in order; None if they have no text.

    If the message is deleted, or reports an event, the first reply stands in its place.
    """
    by_time = {message.ts: message for message in messages}
    root = next((message for message in by_time.values() if message.is_thread), None)
    if root is None:
        return None
    replies = [by_time[ts] for ts in sorted(by_time, key=float) if ts != root.ts and by_time[ts].is_said]
    opening = text_of(root, directory) if root.is_said else ""
    answers = [(answer, channel.url_of(reply, root)) for reply in replies if (answer := text_of(reply, directory))]
    if not opening and not answers:
        return None
    url = channel.url_of(root, root)
    if not root.is_said:
        (opening, url), *answers = answers
    return Document(
        id=f"{source}/{channel.id}/{root.ts}",
        source=source,
        family=FAMILY,
        title=thread_title(channel.name, opening or answers[0][0]),
        text=thread_text(opening, [answer for answer, _ in answers]),
        kind=DocumentKind.THREAD,
        url=url,
        part_urls=thread_urls(opening, url, answers),
        updated_at=datetime.fromtimestamp(max(message.active_at for message in (root, *replies)), UTC),
        readers=channel.readers,
        people=_people([root, *replies], channel, directory),
    )


def _people(messages: Sequence[Message], channel: SlackChannel, directory: Directory) -> tuple[tuple[str, ...], ...]:
    mentioned = (match[1] for each in messages for match in _MENTION.finditer(each.seen))
    ids = {*channel.members, *(each.user for each in messages if each.user), *mentioned}
    return tuple(directory.people[user] for user in sorted(ids) if user in directory.people)


def _named(match: re.Match[str], directory: Directory) -> str:
    """Return the readable form of `<@U1>`, `<#C1|name>`, `<!here>`, `<!subteam^S1|@team>` or `<https://…|text>`."""
    target, label = match[1], match[2] or ""
    match target[0]:
        case "@":
            names = directory.people.get(target[1:])
            return f"@{names[0] if names else label.lstrip('@') or 'somebody'}"
        case "#":
            return f"#{label or directory.channels.get(target[1:], 'channel')}"
        case "!":
            return label or f"@{target[1:].partition('^')[0]}"
        case _:
            return f"[{label}]({target})" if label and label != target else target
