"""Microsoft Graph, shared by the knowledge sources and the chat: access tokens, pages of collections, and messages of Teams.

https://learn.microsoft.com/graph/paging · https://learn.microsoft.com/graph/api/resources/chatmessage
https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-reference

The fields of a message are those of the Ericsson chatbot, appendices A and B.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from typing import Any

import aiohttp
from pydantic import BaseModel, ConfigDict, Field

from adapters.edge import Moment
from adapters.html import cut_markup, markdown_of, parsed, put_in_place
from adapters.http import Http, followed, source_server
from adapters.microsoft_login import LOGIN_URL, AppToken, ClientLogin, ClientSecret
from adapters.section import EnvironmentName, Host
from adapters.sources.section import SourceSection
from core.model.conversation import cut_message

CARD = "application/vnd.microsoft."  # prefix of the content type of every card
FORWARDED, QUOTED = "forwardedMessageReference", "messageReference"
READ = (
    "title",
    "subtitle",
    "activityTitle",
    "activitySubtitle",
    "text",
    "name",
    "value",
    "codeSnippet",
)  # in this order
CHILDREN = ("columns", "rows", "cells", "items", "facts", "sections", "body", "pages")
MAX_SIZE = 100_000  # characters of a card; Teams accepts about 28 KB
MAX_DEPTH = 20
FULL_READ_EVERY = timedelta(days=30)  # of what is read by deltas between
LINK_REFUSED = frozenset({400, 404, 410})  # HTTP status codes for an expired delta link


def attached_text(kind: str, content: Any) -> str:
    """Return the texts of an attachment, one per line, without buttons; empty if it is neither card nor message.

    `content` is JSON, as text or read.
    """
    if not kind.startswith((CARD, FORWARDED, QUOTED)):
        return ""
    try:
        card = json.loads(content[:MAX_SIZE]) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        return ""
    if kind == FORWARDED:
        original = card.get("originalMessageContent") if isinstance(card, dict) else None
        return markdown_of(parsed(cut_message(original))) if isinstance(original, str) else ""
    if kind == QUOTED:
        preview = card.get("messagePreview") if isinstance(card, dict) else None
        return cut_message(preview).strip() if isinstance(preview, str) else ""
    return cut_message("\n".join(_texts(card, MAX_DEPTH)))


def _texts(element: Any, depth: int) -> Iterator[str]:
    if not isinstance(element, dict) or not depth or element.get("isVisible") is False:
        return
    if str(element.get("type")).startswith("Input."):
        return
    own = [element[name].strip() for name in READ if isinstance(element.get(name), str)]
    own += ["".join(map(_run, _list(element.get("inlines")))).strip()]
    if text := " ".join(filter(None, own)):
        yield text
    for name in CHILDREN:
        for child in _list(element.get(name)):
            yield from _texts(child, depth - 1)


def _run(run: Any) -> str:
    """Return a part of a line, with its spaces."""
    return str(run.get("text") or "") if isinstance(run, dict) else str(run)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class GraphModel(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class GraphIdentity(GraphModel):
    id: str | None = None
    displayName: str | None = None
    email: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.displayName, self.email))) if self.displayName else ()


class GraphIdentities(GraphModel):
    """A person, a bot, a group of the tenant, or a group of a site."""

    user: GraphIdentity | None = None
    application: GraphIdentity | None = None
    group: GraphIdentity | None = None
    siteGroup: GraphIdentity | None = None


class _Body(GraphModel):
    contentType: str = "text"
    content: str | None = None


class Attachment(GraphModel):
    """A file by its name, or a card, whose `content` is JSON text."""

    name: str | None = None
    contentType: str | None = None
    content: Any = None


class _Mention(GraphModel):
    id: int | str | None = None
    mentioned: GraphIdentities | None = None


class GraphMessage(GraphModel):
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
    sender: GraphIdentities | None = Field(None, alias="from")
    body: _Body = _Body()
    attachments: list[Attachment] | None = None
    mentions: list[_Mention] | None = None
    replies: list[dict[str, Any]] | None = None  # the newest, if they were asked for

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
    def named(self) -> Iterator[GraphIdentity]:
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


GRAPH_URL = "https://graph.microsoft.com/v1.0"
RESOURCE = "https://graph.microsoft.com"


class GraphCredentials(AppToken):
    """The token of an application with a secret for Microsoft Graph in a tenant."""

    def __init__(
        self,
        tenant_id: str,
        client_id: str,
        client_secret: str,
        session: aiohttp.ClientSession,
        login_url: str = LOGIN_URL,
    ) -> None:
        super().__init__(ClientLogin(login_url, tenant_id, client_id, ClientSecret(client_secret)), RESOURCE, session)


class GraphSection(SourceSection):
    """A source that is read through Microsoft Graph, by an app registered in a tenant."""

    tenant_id: str
    client_id: str
    client_secret_env: EnvironmentName

    def graph(self, host: Host) -> Http:
        secret = host.settings.secret(self.client_secret_env, self.name)
        credentials = GraphCredentials(self.tenant_id, self.client_id, secret, host.session)
        return source_server("Microsoft Graph", GRAPH_URL, host.session, credentials)


async def graph_pages(
    server: Http, address: str, parameters: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield each page of a collection. Raises SourceUnavailable if the links form a loop."""
    answer = await server.get(address, parameters)
    before = set[str]()
    while True:
        yield answer | {"value": server.objects(answer, "value")}
        if not (following := answer.get("@odata.nextLink")):
            return
        answer = await server.get(followed(str(following), before, server.system))


async def graph_values(server: Http, address: str, parameters: Mapping[str, str] | None = None) -> list[Any]:
    """Return all values of a collection."""
    return [each async for page in graph_pages(server, address, parameters) for each in page["value"]]
