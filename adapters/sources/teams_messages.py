"""A message of Microsoft Teams with its replies → a document, from Graph and from an export alike.

https://learn.microsoft.com/graph/api/resources/chatmessage; the fields are those of the Ericsson chatbot, appendices A
and B.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bs4.element import NavigableString
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from adapters.sources.chat_threads import FAMILY, thread_title
from adapters.sources.html import markdown_of, parsed
from core.conversation import PUBLIC
from core.knowledge.document import Document, DocumentKind
from core.knowledge.layout import thread_text, thread_urls

MAX_MEMBERS = 200  # of a channel that are readers by name; in a larger one only channels are readers


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class _Identity(_Model):
    id: str | None = None
    displayName: str | None = None


class _IdentitySet(_Model):
    user: _Identity | None = None
    application: _Identity | None = None


class _Body(_Model):
    contentType: str = "text"
    content: str | None = None


class Attachment(_Model):
    """A file by its name, or a card: its `content` is JSON as text."""

    name: str | None = None
    contentType: str | None = None
    content: Any = None


class _Mention(_Model):
    id: int | str | None = None
    mentionText: str | None = None
    mentioned: _IdentitySet | None = None


class ChatMessage(_Model):
    """A message or a reply. `id` is unique within its channel; `replyToId` is the id of the message it answers."""

    id: str
    replyToId: str | None = None
    messageType: str = "message"
    createdDateTime: AwareDatetime
    lastEditedDateTime: AwareDatetime | None = None
    deletedDateTime: AwareDatetime | None = None
    subject: str | None = None
    webUrl: str | None = None
    policyViolation: Any = None
    eventDetail: Any = None
    sender: _IdentitySet | None = Field(None, alias="from")
    body: _Body = _Body()
    attachments: list[Attachment] | None = None
    mentions: list[_Mention] | None = None

    @property
    def is_said(self) -> bool:
        """Whether it holds what somebody said: it is no event, not deleted, and not withheld by a policy."""
        return (
            self.messageType == "message"
            and self.deletedDateTime is None
            and self.policyViolation is None
            and self.eventDetail is None
        )

    @property
    def application_id(self) -> str | None:
        """The id of the bot or connector that sent it; None if a person did."""
        return self.sender.application.id if self.sender and self.sender.application else None

    def mentions_of(self, application_id: str) -> frozenset[str]:
        """The ids, within this message, of the mentions of a bot."""
        return frozenset(
            str(mention.id)
            for mention in self.mentions or ()
            if application_id
            and mention.mentioned
            and mention.mentioned.application
            and mention.mentioned.application.id == application_id
        )

    @property
    def named(self) -> Iterator[_Identity]:
        """Who sent it, and who is mentioned in it."""
        sets = [self.sender, *(mention.mentioned for mention in self.mentions or ())]
        return (each.user for each in sets if each and each.user)


@dataclass(frozen=True, slots=True)
class TeamsChannel:
    """A channel. `readers` see it; `members` are what each member is known by."""

    id: str
    name: str
    readers: frozenset[str]
    members: tuple[tuple[str, ...], ...]


def readers_of(channel_id: str, *, everybody: bool, siblings: Iterable[str], people: Iterable[str]) -> frozenset[str]:
    """Who may read a channel: everybody, or its people and the channels (`siblings`) of the very same people."""
    if everybody:
        return frozenset({PUBLIC, f"channel:teams:{channel_id}"})
    persons = [f"person:teams:{user}" for user in people]
    channels = {f"channel:teams:{channel}" for channel in (channel_id, *siblings)}
    return frozenset({*channels, *(persons if len(persons) <= MAX_MEMBERS else ())})


def text_of(message: ChatMessage, addressed: str = "") -> str:
    """What it says, as Markdown: its subject, its text with the names of those mentioned, its attachments by name.

    The application of the id `addressed` is left out of those mentioned.
    """
    content = message.body.content or ""
    is_html = message.body.contentType.lower() == "html"
    text = _from_html(content, message.mentions_of(addressed)) if is_html else content.strip()
    subject = (message.subject or "").strip()
    files = "".join(f"\n(attachment: {each.name})" for each in message.attachments or () if each.name)
    return "\n\n".join(filter(None, (f"**{subject}**" if subject else "", text))) + files


def thread_document(source: str, channel: TeamsChannel, messages: Iterable[ChatMessage]) -> Document | None:
    """The document of a message and its replies, these as they were posted. None if nothing was said in it.

    A bot's or connector's message is the beginning of a document only if somebody answered it.
    """
    ordered = sorted(
        {message.id: message for message in messages}.values(),
        key=lambda each: (each.replyToId or "", each.createdDateTime),
    )
    root = next((message for message in ordered if not message.replyToId and message.is_said), None)
    if root is None or not (said := text_of(root)):
        return None
    replies = sorted(
        (each for each in ordered if each.replyToId and each.is_said), key=lambda each: each.createdDateTime
    )
    if root.application_id and not any(reply.application_id is None for reply in replies):
        return None
    answers = [(answer, reply.webUrl or "") for reply in replies if (answer := text_of(reply))]
    return Document(
        id=f"{source}/{channel.id}/{root.id}",
        source=source,
        family=FAMILY,
        title=thread_title(channel.name, root.subject or said),
        text=thread_text(said, [answer for answer, _ in answers]),
        kind=DocumentKind.THREAD,
        url=root.webUrl or "",
        part_urls=thread_urls(said, root.webUrl or "", answers),
        updated_at=max(each.lastEditedDateTime or each.createdDateTime for each in (root, *replies)),
        readers=channel.readers,
        people=_people([root, *replies], channel),
    )


def _from_html(content: str, left_out: frozenset[str]) -> str:
    soup = parsed(content)
    for mention in soup("at"):
        is_left_out = str(mention.get("id")) in left_out
        mention.replace_with(NavigableString("" if is_left_out else f"@{mention.get_text()}"))
    for emoji in soup("emoji"):
        emoji.replace_with(NavigableString(str(emoji.get("alt") or "")))
    for tag in soup(("attachment", "img", "systemeventmessage")):
        tag.decompose()
    for block in soup("codeblock"):
        block.name = "pre"
    return markdown_of(soup)


def _people(messages: Iterable[ChatMessage], channel: TeamsChannel) -> tuple[tuple[str, ...], ...]:
    names = {identity.displayName for message in messages for identity in message.named if identity.displayName}
    known = {member[0] for member in channel.members}
    return (*channel.members, *((name,) for name in sorted(names - known)))
