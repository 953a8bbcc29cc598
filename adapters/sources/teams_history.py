"""Channels of Microsoft Teams through Microsoft Graph.

https://learn.microsoft.com/graph/api/channel-list-messages · https://learn.microsoft.com/graph/api/chatmessage-delta

A channel is first read completely, because delta queries reach back only eight months. Then the delta link returned by
Graph leads to the changes. A link is valid for some days; after that, and once a month, the channel is read completely
again. Required application permissions: ChannelMessage.Read.All (or ChannelMessage.Read.Group by resource-specific
consent), Channel.ReadBasic.All, ChannelMember.Read.All, Team.ReadBasic.All.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import quote

import structlog
from pydantic import Field

from adapters.http import OBJECTS, Gone, Http, Refused
from adapters.microsoft import (
    FULL_READ_EVERY,
    LINK_REFUSED,
    GraphMessage,
    GraphSection,
    graph_pages,
    graph_values,
    text_of,
)
from adapters.section import Host
from adapters.sources.chat_threads import CLOCK_SKEW, MAX_MEMBERS, ChatChannel, ThreadMessage, thread_document
from adapters.sources.section import (
    Indexed,
    ListingPart,
    Position,
    SourcePlace,
    SourcePlaces,
    TrackedSource,
    mark,
    messages_in,
)
from adapters.teams.settings import TeamsSettings
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.ports import Clock, LeftOut

PAGE = "50"  # messages per response; the maximum of Graph

log = structlog.get_logger()


class TeamsChannelsSource(TrackedSource):
    """The threads of some teams' channels, each a document. The bot's own messages are left out."""

    is_divided = True

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

    async def check(self) -> None:
        for team_id in self._teams:
            await self._server.get(f"teams/{quote(team_id)}/channels")

    async def places(self) -> SourcePlaces:
        places, refusals, are_all = list[_ChannelPlace](), list[str](), True
        for team_id, channel_ids in self._teams.items():
            try:
                channels = await self._channels(team_id, channel_ids)
            except Refused as error:
                # Only this team fails; the others are read.
                refusals.append(f"{team_id}: {error}")
                are_all &= isinstance(error, Gone)
                continue
            missing = sorted({*channel_ids} - {channel.id for channel in channels})
            refusals += [f"The team {team_id} has no channel {channel_id} or hides it." for channel_id in missing]
            for channel in channels:
                base = f"{_address(team_id, channel.id)}/messages"
                places.append(_ChannelPlace(self.name, self._server, base, channel, self._clock, self._bot_id))
        return SourcePlaces(places, refusals, are_all)

    async def _channels(self, team_id: str, wanted: Sequence[str]) -> list[ChatChannel]:
        team = await self._server.get(f"teams/{quote(team_id)}")
        values = await graph_values(self._server, f"teams/{quote(team_id)}/channels")
        if any(not isinstance(value.get("id"), str) for value in values):
            raise Refused(f"Microsoft Graph lists a channel of the team {team_id} without an id.", 0)
        channels = list[ChatChannel]()
        for value in values:
            if not wanted or value["id"] in wanted:
                members = await self._members(team_id, value["id"])
                channels.append(_channel_of(value, team, values, members))
        return channels

    async def _members(self, team_id: str, channel_id: str) -> dict[str, tuple[str, ...]]:
        """Return the name and address of each member; empty if the application lacks the permission; then only channels
        are readers.
        """
        try:
            values = await graph_values(self._server, f"{_address(team_id, channel_id)}/members")
        except Refused as error:
            log.warning("members_unknown", source=self.name, channel=channel_id, error=str(error))
            return {}
        return {
            str(value["userId"]): tuple(str(value[key]) for key in ("displayName", "email") if value.get(key))
            for value in values
            if value.get("userId")
        }


class _ChannelPlace(SourcePlace):
    def __init__(self, source: str, server: Http, base: str, channel: ChatChannel, clock: Clock, bot_id: str) -> None:
        """Create the place. `base` is the address of the channel's messages."""
        self.id = channel.id
        self.label = f"#{channel.name}"
        self._source = source
        self._server = server
        self._base = base
        self._channel = channel
        self._clock = clock
        self._bot_id = bot_id

    async def state(self) -> str:
        return mark(self._channel.name, self._channel.readers)

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        is_old = self._clock.now().timestamp() - position.full_at >= FULL_READ_EVERY.total_seconds()
        if position.link and not is_old:
            try:
                async for chunk in self._deltas(position, graph_pages(self._server, position.link)):
                    yield chunk
            except Refused as error:
                if error.status not in LINK_REFUSED:
                    raise
                log.info("source_read_anew", source=self._source, channel=self.id, reason=str(error))
            else:
                return
        async for chunk in self._whole(indexed):
            yield chunk

    async def _whole(self, indexed: Indexed) -> AsyncIterator[ListingPart]:
        """Read every thread.

        The position is saved at the end: an interrupted reading starts again, and rewrites nothing.
        """
        began, seen = self._clock.now() - CLOCK_SKEW, set[str]()
        async for answer in graph_pages(self._server, self._base, {"$top": PAGE, "$expand": "replies"}):
            left_out = list[LeftOut]()
            threads = [await self._thread(str(item.get("id")), item, item, left_out) for item in answer["value"]]
            documents = [document for document in threads if document]
            seen |= {document.id for document in documents}
            yield ListingPart(documents=documents, left_out=left_out)
        position = Position(full_at=began.timestamp())
        since = began.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        opening = {"$top": PAGE, "$expand": "replies", "$filter": f"lastModifiedDateTime gt {since}"}
        try:
            async for chunk in self._deltas(position, graph_pages(self._server, f"{self._base}/delta", opening)):
                seen |= {document.id for document in chunk.documents}
                yield replace(chunk, position=chunk.position if chunk.position.link else Position())
                position = chunk.position
        except Refused as error:
            # Graph refuses deltas of new and empty channels, which are small and are read completely the next time.
            log.info("source_without_delta", source=self._source, channel=self.id, reason=str(error))
        yield ListingPart(position=position, gone={entry for entry, ids in indexed.items() if not seen.issuperset(ids)})

    async def _deltas(self, position: Position, answers: AsyncIterator[dict[str, Any]]) -> AsyncIterator[ListingPart]:
        """Yield the threads of each response, which are read again, because a delta may contain only a part of one."""
        async for answer in answers:
            documents, gone, left_out = list[Document](), set[str](), list[LeftOut]()
            for root_id, item in {
                str(each.get("replyToId") or each.get("id")): each for each in answer["value"]
            }.items():
                if document := await self._current(root_id, item, left_out):
                    documents.append(document)
                else:
                    gone.add(root_id)
            link = str(answer.get("@odata.deltaLink") or position.link)
            yield ListingPart((), replace(position, link=link), documents, gone, left_out)

    async def _current(self, root_id: str, item: Mapping[str, Any], left_out: list[LeftOut]) -> Document | None:
        if "@removed" in item and not item.get("replyToId"):
            return None
        address = f"{self._base}/{quote(root_id)}"
        is_root = str(item.get("id")) == root_id and "createdDateTime" in item
        try:
            root = item if is_root else await self._server.get(address)
            replies = await graph_values(self._server, f"{address}/replies", {"$top": PAGE})
        except Gone:
            return None
        return await self._thread(root_id, root, {"replies": replies}, left_out)

    async def _thread(
        self, root_id: str, root: Mapping[str, Any], expanded: Mapping[str, Any], left_out: list[LeftOut]
    ) -> Document | None:
        replies = self._server.listed(expanded, "replies", OBJECTS) if expanded.get("replies") is not None else []
        if following := expanded.get("replies@odata.nextLink"):
            replies += await graph_values(self._server, str(following))
        messages = messages_in((root, *replies), GraphMessage, left_out, self._channel.name)
        if any(self._is_own(each) and not each.replyToId for each in messages):
            return None
        theirs = [each for each in messages if not self._is_own(each)]
        return _document_of(self._source, self._channel, root_id, theirs)

    def _is_own(self, message: GraphMessage) -> bool:
        return bool(self._bot_id) and message.application_id == self._bot_id


def _address(team_id: str, channel_id: str) -> str:
    return f"teams/{quote(team_id)}/channels/{quote(channel_id, safe=':@')}"


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


def _channel_of(
    row: Mapping[str, Any],
    team: Mapping[str, Any],
    listed: Iterable[Mapping[str, Any]],
    members: Mapping[str, tuple[str, ...]],
) -> ChatChannel:
    """Return a channel of a team, whose channels are `listed`.

    Everybody may read it, or its members, whose names are given by their ids, and the team's other standard channels.
    """
    channel_id = str(row.get("id"))
    here = f"channel:teams:{channel_id}"
    siblings = (f"channel:teams:{each.get('id')}" for each in listed if _is_standard(row) and _is_standard(each))
    persons = (f"person:teams:{user}" for user in members) if len(members) <= MAX_MEMBERS else ()
    is_public = _is_standard(row) and str(team.get("visibility")).lower() == "public"
    readers = frozenset({PUBLIC, here}) if is_public else frozenset({here, *siblings, *persons})
    names = tuple(members[user] for user in sorted(members) if members[user])
    return ChatChannel(channel_id, str(row.get("displayName") or channel_id), readers, names)


def _is_standard(row: Mapping[str, Any]) -> bool:
    return str(row.get("membershipType")).lower() == "standard"


def _document_of(source: str, channel: ChatChannel, root_id: str, messages: Iterable[GraphMessage]) -> Document | None:
    """Return the document of a message and its replies; None if they have no text."""
    shown = (
        ThreadMessage(
            id=each.id,
            text=text_of(each) if each.is_said else None,
            sent_at=each.createdDateTime,
            url=each.webUrl or "",
            subject=each.subject or "",
            changed_at=each.lastEditedDateTime,
            is_by_bot=each.application_id is not None,
            people=tuple((identity.displayName,) for identity in each.named if identity.displayName),
        )
        for each in messages
    )
    return thread_document(source, channel, root_id, shown)
