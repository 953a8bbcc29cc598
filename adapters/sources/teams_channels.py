"""Channels of Microsoft Teams through Microsoft Graph, and the conversion of threads to documents, for exports too.

https://learn.microsoft.com/graph/api/channel-list-messages · https://learn.microsoft.com/graph/api/chatmessage-delta

A channel is first read completely, because delta queries reach back only eight months. Then the delta link returned by
Graph leads to the changes. A link is valid for some days; after that, and once a month, the channel is read completely
again. Required application permissions: ChannelMessage.Read.All (or ChannelMessage.Read.Group by resource-specific
consent), Channel.ReadBasic.All, ChannelMember.Read.All, Team.ReadBasic.All.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote

import structlog
from pydantic import Field, TypeAdapter

from adapters.http import Gone, Http, Refused
from adapters.microsoft_graph import GraphMessage, GraphSection, graph_pages, graph_values, text_of
from adapters.section import Host
from adapters.sources.chat_threads import FAMILY, thread_title
from adapters.sources.json_lines import messages_in
from adapters.sources.section import cursor_of, mark, positions_of
from adapters.teams.settings import TeamsSettings
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.errors import SourceUnavailable
from core.model.text import thread_text, thread_urls
from core.ports import Clock, LeftOut, SourceChanges

PAGE = "50"  # messages per response; the maximum of Graph
FULL_READ_EVERY = timedelta(days=30)
CLOCK_SKEW = timedelta(minutes=10)  # maximum lead of our clock over Graph's
LINK_REFUSED = frozenset({400, 404, 410})  # HTTP status codes for an expired delta link

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Position:
    """The position in a channel: a delta `link`.

    It was read completely at `full_at` (seconds), for the readers in `mark`.
    """

    mark: str = ""
    link: str = ""
    full_at: float = 0.0


_POSITIONS = TypeAdapter(dict[str, _Position])


@dataclass(frozen=True, slots=True)
class _Part:
    documents: Sequence[Document]
    removed: Iterable[str]
    position: _Position


class TeamsChannelsSource:
    """The threads of some teams' channels, each a document. The bot's own messages are left out."""

    def __init__(
        self, name: str, server: Http, teams: Mapping[str, Sequence[str]], clock: Clock, bot_id: str = ""
    ) -> None:
        """Create the source.

        `teams` maps a team id to the ids of the channels to read; empty means all visible ones.
        """
        self.name = name
        self._server = server
        self._teams = teams
        self._clock = clock
        self._bot_id = bot_id
        self._left_out: list[LeftOut] = []

    async def check(self) -> None:
        for team_id in self._teams:
            await self._server.get(f"teams/{quote(team_id)}/channels")

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        positions = positions_of(cursor, _POSITIONS)
        self._left_out.clear()
        wanted = set[str]()
        refusals = list[str]()
        all_listed = True
        for team_id, channel_ids in self._teams.items():
            try:
                channels = await self._channels(team_id, channel_ids)
            except Refused as error:
                # Only this team fails; the others are read.
                refusals.append(f"{team_id}: {error}")
                all_listed &= isinstance(error, Gone)
                continue
            missing = sorted({*channel_ids} - {channel.id for channel in channels})
            refusals += [f"The team {team_id} has no channel {channel_id} or hides it." for channel_id in missing]
            for channel in channels:
                wanted.add(channel.id)
                indexed = frozenset(known_id for known_id in known_ids if known_id.startswith(self._id(channel.id, "")))
                try:
                    async for part in self._read(team_id, channel, positions.get(channel.id, _Position()), indexed):
                        positions[channel.id] = part.position
                        yield SourceChanges(tuple(part.documents), frozenset(part.removed), cursor_of(positions))
                except Refused as error:
                    # Only this channel fails; the others are read.
                    refusals.append(f"#{channel.name}: {error}")
        if self._left_out:
            yield SourceChanges((), frozenset(), cursor_of(positions), tuple(self._left_out))
        if all_listed:
            left = frozenset(known_id for known_id in known_ids if known_id.split("/")[1] not in wanted)
            yield SourceChanges((), left, cursor_of({key: value for key, value in positions.items() if key in wanted}))
        if refusals:
            raise SourceUnavailable(" ".join(refusals))

    async def _read(
        self, team_id: str, channel: TeamsChannel, position: _Position, indexed: frozenset[str]
    ) -> AsyncIterator[_Part]:
        is_old = self._clock.now().timestamp() - position.full_at >= FULL_READ_EVERY.total_seconds()
        if position.link and position.mark == mark(channel.name, channel.readers) and not is_old:
            try:
                async for part in self._changed(team_id, channel, position):
                    yield part
            except Refused as error:
                if error.status not in LINK_REFUSED:
                    raise
                log.info("source_read_anew", source=self.name, channel=channel.id, reason=str(error))
            else:
                return
        async for part in self._whole(team_id, channel, indexed):
            yield part

    async def _whole(self, team_id: str, channel: TeamsChannel, indexed: frozenset[str]) -> AsyncIterator[_Part]:
        """Read every thread.

        The position is saved at the end: an interrupted reading starts again, and rewrites nothing.
        """
        began = self._clock.now() - CLOCK_SKEW
        base, seen = _messages_of(team_id, channel.id), set[str]()
        async for answer in graph_pages(self._server, base, {"$top": PAGE, "$expand": "replies"}):
            threads = [await self._thread(base, channel, item, item) for item in answer["value"]]
            documents = [document for document in threads if document]
            seen |= {document.id for document in documents}
            yield _Part(documents, (), _Position())
        position = _Position(mark(channel.name, channel.readers), "", began.timestamp())
        since = began.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        opening = {"$top": PAGE, "$expand": "replies", "$filter": f"lastModifiedDateTime gt {since}"}
        try:
            async for part in self._deltas(
                base, channel, position, graph_pages(self._server, f"{base}/delta", opening)
            ):
                seen |= {document.id for document in part.documents}
                yield _Part(part.documents, part.removed, _Position() if not part.position.link else part.position)
                position = part.position
        except Refused as error:
            # Graph refuses deltas of new and empty channels, which are small and are read completely the next time.
            log.info("source_without_delta", source=self.name, channel=channel.id, reason=str(error))
        yield _Part((), indexed - seen, position)

    async def _changed(self, team_id: str, channel: TeamsChannel, position: _Position) -> AsyncIterator[_Part]:
        base = _messages_of(team_id, channel.id)
        async for part in self._deltas(base, channel, position, graph_pages(self._server, position.link)):
            yield part

    async def _deltas(
        self, base: str, channel: TeamsChannel, position: _Position, answers: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[_Part]:
        """Yield one part per response.

        The named threads are read again, because a delta may contain only a part of a thread.
        """
        async for answer in answers:
            named = {str(item.get("replyToId") or item.get("id")): item for item in answer["value"]}
            documents, removed = list[Document](), list[str]()
            for root_id, item in named.items():
                if document := await self._current(base, channel, root_id, item):
                    documents.append(document)
                else:
                    removed.append(self._id(channel.id, root_id))
            link = str(answer.get("@odata.deltaLink") or position.link)
            yield _Part(documents, removed, _Position(position.mark, link, position.full_at))

    async def _current(
        self, base: str, channel: TeamsChannel, root_id: str, item: Mapping[str, Any]
    ) -> Document | None:
        if "@removed" in item and not item.get("replyToId"):
            return None
        address = f"{base}/{quote(root_id)}"
        try:
            root = (
                item
                if str(item.get("id")) == root_id and "createdDateTime" in item
                else await self._server.get(address)
            )
            replies = await graph_values(self._server, f"{address}/replies", {"$top": PAGE})
        except Gone:
            return None
        return await self._thread(base, channel, root, {"replies": replies})

    async def _thread(
        self, base: str, channel: TeamsChannel, root: Mapping[str, Any], expanded: Mapping[str, Any]
    ) -> Document | None:
        replies = self._server.objects(expanded, "replies") if expanded.get("replies") is not None else []
        if following := expanded.get("replies@odata.nextLink"):
            replies += await graph_values(self._server, str(following))
        messages = messages_in((root, *replies), GraphMessage, self._left_out, channel.name)
        if any(self._is_own(each) and not each.replyToId for each in messages):
            return None
        return thread_document(self.name, channel, [each for each in messages if not self._is_own(each)])

    async def _channels(self, team_id: str, wanted: Sequence[str]) -> list[TeamsChannel]:
        team = await self._server.get(f"teams/{quote(team_id)}")
        values = await graph_values(self._server, f"teams/{quote(team_id)}/channels")
        if any(not isinstance(value.get("id"), str) for value in values):
            raise Refused(f"Microsoft Graph lists a channel of the team {team_id} without an id.", 0)
        standard = [str(value["id"]) for value in values if value.get("membershipType") == "standard"]
        channels = list[TeamsChannel]()
        for value in values:
            channel_id = str(value["id"])
            if wanted and channel_id not in wanted:
                continue
            members = await self._members(team_id, channel_id)
            is_standard = channel_id in standard
            readers = readers_of(
                channel_id,
                everybody=is_standard and str(team.get("visibility")).lower() == "public",
                siblings=standard if is_standard else (),
                people=sorted(members),
            )
            names = tuple(members[user] for user in sorted(members) if members[user])
            channels.append(TeamsChannel(channel_id, str(value.get("displayName") or channel_id), readers, names))
        return channels

    async def _members(self, team_id: str, channel_id: str) -> dict[str, tuple[str, ...]]:
        """Return the name and address of each member; empty if the application lacks the permission; then only channels
        are readers.
        """
        address = f"teams/{quote(team_id)}/channels/{_quoted(channel_id)}/members"
        try:
            values = await graph_values(self._server, address)
        except Refused as error:
            log.warning("members_unknown", source=self.name, channel=channel_id, error=str(error))
            return {}
        return {
            str(value["userId"]): tuple(str(value[key]) for key in ("displayName", "email") if value.get(key))
            for value in values
            if value.get("userId")
        }

    def _is_own(self, message: GraphMessage) -> bool:
        return bool(self._bot_id) and message.application_id == self._bot_id

    def _id(self, channel_id: str, message_id: str) -> str:
        return f"{self.name}/{channel_id}/{message_id}"


def _messages_of(team_id: str, channel_id: str) -> str:
    return f"teams/{quote(team_id)}/channels/{_quoted(channel_id)}/messages"


def _quoted(channel_id: str) -> str:
    return quote(channel_id, safe=":@")


class TeamsChannelsSection(GraphSection):
    """Teams channels. `teams` maps a team id to the ids of the channels to read; empty means all visible ones."""

    kind: Literal["teams_channels"]
    teams: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]

    @property
    def place(self) -> str:
        return ", ".join(self.teams)

    def open(self, host: Host) -> TeamsChannelsSource:
        bot_id = host.settings.chat(TeamsSettings).app_id
        return TeamsChannelsSource(self.name, self.graph(host), self.teams, host.clock, bot_id)


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
