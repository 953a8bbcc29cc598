"""Conversion of Teams threads to documents, for Graph and exports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from adapters.microsoft_graph.messages import GraphMessage, text_of
from adapters.sources.chat_threads import FAMILY, thread_title
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.layout import thread_text, thread_urls

MAX_MEMBERS = 200  # of a channel listed as readers; in a larger one, only channels are readers


@dataclass(frozen=True, slots=True)
class TeamsChannel:
    """A channel. `readers` may read it; `members` are the names of each member."""

    id: str
    name: str
    readers: frozenset[str]
    members: tuple[tuple[str, ...], ...]


def readers_of(channel_id: str, *, everybody: bool, siblings: Iterable[str], people: Iterable[str]) -> frozenset[str]:
    """Return the readers of a channel: everybody, or its members and the channels (`siblings`) with the same members."""
    if everybody:
        return frozenset({PUBLIC, f"channel:teams:{channel_id}"})
    persons = [f"person:teams:{user}" for user in people]
    channels = {f"channel:teams:{channel}" for channel in (channel_id, *siblings)}
    return frozenset({*channels, *(persons if len(persons) <= MAX_MEMBERS else ())})


def thread_document(source: str, channel: TeamsChannel, messages: Iterable[GraphMessage]) -> Document | None:
    """Return the document of a message and its replies, in order; None if they have no text.

    A message of a bot or connector begins a document only if somebody replied. If the message is deleted, withheld,
    missing, or reports an event, the first reply stands in its place.
    """
    ordered = sorted(
        {message.id: message for message in messages}.values(),
        key=lambda each: (bool(each.replyToId), each.createdDateTime),
    )
    spoken = [message for message in ordered if message.is_said]
    if not spoken:
        return None
    root, *replies = spoken
    if root.application_id and not any(reply.application_id is None for reply in replies):
        return None
    opening, answers = text_of(root), [(answer, reply.webUrl or "") for reply in replies if (answer := text_of(reply))]
    if not opening and not answers:
        return None
    return Document(
        id=f"{source}/{channel.id}/{root.replyToId or root.id}",
        source=source,
        family=FAMILY,
        title=thread_title(channel.name, root.subject or opening or answers[0][0]),
        text=thread_text(opening, [answer for answer, _ in answers]),
        kind=DocumentKind.THREAD,
        url=root.webUrl or "",
        part_urls=thread_urls(opening, root.webUrl or "", answers),
        updated_at=max(each.lastEditedDateTime or each.createdDateTime for each in (root, *replies)),
        readers=channel.readers,
        people=_people([root, *replies], channel),
    )


def _people(messages: Iterable[GraphMessage], channel: TeamsChannel) -> tuple[tuple[str, ...], ...]:
    names = {identity.displayName for message in messages for identity in message.named if identity.displayName}
    return (*channel.members, *((name,) for name in sorted(names - {member[0] for member in channel.members})))
