"""Messages of Microsoft Teams, from Graph and from exports.

https://learn.microsoft.com/graph/api/resources/chatmessage; the fields are those of the Ericsson chatbot, appendices A
and B.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adapters.edge import Moment
from adapters.html import cut_markup, markdown_of, parsed, put_in_place
from adapters.microsoft_graph.cards import QUOTED, attached_text
from core.model.conversation import cut_message


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
    """A file by its name, or a card, whose `content` is JSON text."""

    name: str | None = None
    contentType: str | None = None
    content: Any = None


class _Mention(_Model):
    id: int | str | None = None
    mentioned: _IdentitySet | None = None


class GraphMessage(_Model):
    """A message or a reply. `id` is unique within its channel; `replyToId` is the id of the message that it answers."""

    id: str
    replyToId: str | None = None
    messageType: str = "message"
    createdDateTime: Moment
    lastEditedDateTime: Moment | None = None
    deletedDateTime: Moment | None = None
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
        """Return whether a person or application said something: not an event, not deleted, and not withheld by a
        policy.
        """
        return (
            self.messageType == "message"
            and self.deletedDateTime is None
            and self.policyViolation is None
            and self.eventDetail is None
        )

    @property
    def application_id(self) -> str | None:
        """Return the id of the bot or connector that sent it; None for a person."""
        return self.sender.application.id if self.sender and self.sender.application else None

    def mentions_of(self, application_id: str) -> frozenset[str]:
        """Return the ids, within this message, of the mentions of a bot."""
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
        """Yield the sender, and everybody who is mentioned."""
        sets = [self.sender, *(mention.mentioned for mention in self.mentions or ())]
        return (each.user for each in sets if each and each.user)


def text_of(message: GraphMessage, addressed: str = "") -> str:
    """Return the message as Markdown: what it quotes, its subject, its text with the names of mentioned people, the text
    of cards and forwarded messages, and files by name.

    Mentions of the application with the id `addressed` are left out.
    """
    content = message.body.content or ""
    is_html = message.body.contentType.lower() == "html"
    text = _from_html(cut_markup(content), message.mentions_of(addressed)) if is_html else content.strip()
    subject = (message.subject or "").strip()
    attached = [
        part
        for each in message.attachments or ()
        if each.contentType != QUOTED
        for part in (attached_text(each.contentType or "", each.content), each.name and f"(attachment: {each.name})")
        if part
    ]
    previews = [attached_text(QUOTED, each.content) for each in message.attachments or () if each.contentType == QUOTED]
    quotes = (f"> {' '.join(preview.split())}" for preview in previews if preview)
    words = "\n\n".join(filter(None, (*quotes, f"**{subject}**" if subject else "", text)))
    return cut_message("\n".join(filter(None, (words, *attached))))


def _from_html(content: str, left_out: frozenset[str]) -> str:
    soup = parsed(content)
    for mention in soup("at"):
        put_in_place(mention, "" if str(mention.get("id")) in left_out else f"@{mention.get_text()}")
    for emoji in soup("emoji"):
        put_in_place(emoji, str(emoji.get("alt") or ""))
    for tag in soup(("attachment", "img", "systemeventmessage")):
        put_in_place(tag, "")
    for block in soup("codeblock"):
        block.name = "pre"
    return markdown_of(soup)
