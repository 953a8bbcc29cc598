"""Conversations of Slack: the kinds of channels and their audiences, threads, and the text files made of long pastes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import aiohttp
import structlog
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from adapters.chat import MAX_FILES, is_text, text_of_file
from adapters.slack.blocks import plain_text
from adapters.slack.client import BotIdentity, call, error_code, pages
from adapters.slack.organisation import is_organisation, workspaces
from adapters.slack.payloads import Content
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    Person,
    Place,
    Platform,
    SharedFile,
    Speaker,
    Turn,
    channel_audience,
    kept_private,
    person_audience,
    with_outsiders,
)
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError
from core.ports import Clock

KEPT = timedelta(minutes=1)  # how long it is cached of which kind a channel is, and whether it has guests
CALL_TIMEOUT = 1.5  # seconds; Slack waits three for the acknowledgement of its event
PRIVATE = ("is_private", "is_group", "is_mpim")

log = structlog.get_logger()


class ChannelKind(StrEnum):
    CHANNEL = "channel"  # public: its members belong to the workspace
    PRIVATE = "private"  # a private channel or group message: disclosed to its members only
    DIRECT = "direct"  # one person and the bot
    EXTERNAL = "external"  # people of another organisation can read
    ABSENT = "absent"  # the bot is not in it
    UNKNOWN = "unknown"  # Slack did not answer


async def is_open(place: Place, client: AsyncWebClient, identity: BotIdentity) -> bool:
    """Return whether everybody who has the bot may read a channel, which may be archived. Raises ChatUnavailable."""
    channel = (await call("conversations.info", client.conversations_info(channel=place.channel))).get("channel", {})
    return (
        bool(channel.get("is_channel"))
        and not any(map(channel.get, PRIVATE))
        and not is_organisation(await identity.answer())
    )


def audience_of(kind: ChannelKind, place: Place, person: Person, channels: Sequence[Channel]) -> Audience:
    """Return the audience of an answer in a channel of this kind.

    If people of another organisation may read, only what is shared with exactly this channel may be shown.
    """
    if kind is ChannelKind.DIRECT:
        return person_audience(person)
    everybody = channel_audience(place, channels)
    if kind is ChannelKind.PRIVATE:
        return kept_private(everybody)
    return everybody if kind is ChannelKind.CHANNEL else with_outsiders(everybody)


def _kind(channel: dict[str, Any], *, in_organisation: bool) -> ChannelKind:
    if channel.get("is_ext_shared") or channel.get("is_pending_ext_shared"):
        return ChannelKind.EXTERNAL
    if channel.get("is_im"):
        return ChannelKind.DIRECT
    if channel.get("is_member") is False:
        return ChannelKind.ABSENT
    if in_organisation or any(map(channel.get, PRIVATE)):
        return ChannelKind.PRIVATE
    return ChannelKind.CHANNEL if channel.get("is_channel") else ChannelKind.UNKNOWN


class ChannelReaders:
    """Looks up channels and guests in Slack. Without an answer in time, the smaller audience is assumed."""

    def __init__(self, client: AsyncWebClient, channels: Sequence[Channel], clock: Clock) -> None:
        self._channels = channels
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[ChannelKind, datetime]] = {}  # with the time at which it expires
        self._identity = BotIdentity(client)
        self._guests = GuestDirectory(client, clock, self._identity)

    async def kind(self, channel: str, channel_type: str = "", *, shared: bool = False) -> ChannelKind:
        """Return the kind of a channel, from the event itself if possible. Does not raise.

        UNKNOWN if Slack does not answer within CALL_TIMEOUT.
        """
        if shared or channel_type == "im":
            return ChannelKind.EXTERNAL if shared else ChannelKind.DIRECT
        now = self._clock.now()
        if (cached := self._known.get(channel)) is not None and now < cached[1]:
            return cached[0]
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                answer = await call("conversations.info", self._client.conversations_info(channel=channel))
                in_organisation = is_organisation(await self._identity.answer())
        except (PlumblineError, TimeoutError) as error:
            if isinstance(error, PlumblineError) and error_code(error) == "channel_not_found":
                return ChannelKind.ABSENT
            log.warning(
                "Slack did not say who reads a channel, so nothing public is shown", channel=channel, reason=str(error)
            )
            return ChannelKind.UNKNOWN
        kind = _kind(answer.get("channel", {}), in_organisation=in_organisation)
        self._known[channel] = kind, now + KEPT
        return kind

    async def audience(self, kind: ChannelKind, place: Place, person: Person) -> Audience:
        """Return the audience of an answer to this person in this place. Does not raise."""
        audience = audience_of(kind, place, person, self._channels)
        if PUBLIC not in audience.readers:
            return audience
        alone = kind is ChannelKind.DIRECT
        guests = self._guests.is_guest(person.id) if alone else self._guests.read_along(place.channel)
        return with_outsiders(audience) if await guests else audience

    async def audience_at(self, place: Place) -> Audience:
        """Return the audience of everybody in a place. Does not raise."""
        kind = await self.kind(place.channel)
        if kind is ChannelKind.DIRECT:  # the person is unknown
            return with_outsiders(channel_audience(place, self._channels))
        return await self.audience(kind, place, Person(Platform.SLACK, ""))

    async def close(self) -> None:
        await self._guests.close()


RENEWED_AFTER = timedelta(minutes=10)  # age at which the list of guests is refreshed
BELIEVED_FOR = timedelta(hours=1)  # maximum age of the list while Slack does not answer
GUESTS_TIMEOUT = 0.75  # seconds for each of two requests; Slack waits 3 s for the acknowledgement of its event
PEOPLE_PAGE = 1_000  # people per request

GUEST = ("is_restricted", "is_ultra_restricted", "is_stranger")


@dataclass(frozen=True, slots=True)
class _People:
    guests: frozenset[str]
    members: frozenset[str]
    read_at: datetime
    of_organisation: bool  # which may have workspaces without the app, whose people are unknown

    def may_include_guests(self, people: Iterable[str]) -> bool:
        """Return whether one of these people is or may be a guest."""
        return not (self.members.issuperset(people) if self.of_organisation else self.guests.isdisjoint(people))


class GuestDirectory:
    """Looks up guests in Slack. If Slack does not answer in time, a person counts as a guest."""

    def __init__(self, client: AsyncWebClient, clock: Clock, identity: BotIdentity) -> None:
        self._client = client
        self._clock = clock
        self._identity = identity
        self._people: _People | None = None
        self._reading: asyncio.Task[None] | None = None
        self._channels: dict[str, tuple[bool, datetime]] = {}

    async def is_guest(self, user_id: str) -> bool:
        """Return whether this person is or may be a guest, like everybody unknown to Slack. Does not raise."""
        people = await self._current_people()
        return people is None or user_id not in people.members

    async def read_along(self, channel_id: str) -> bool:
        """Return whether a member of the channel is or may be a guest. Does not raise."""
        people = await self._current_people()
        if people is None or not (people.guests or people.of_organisation):
            return people is None
        now = self._clock.now()
        if (cached := self._channels.get(channel_id)) is not None and now < cached[1]:
            return cached[0]
        try:
            async with asyncio.timeout(GUESTS_TIMEOUT):
                has_guests = people.may_include_guests(await self._members("conversations.members", channel=channel_id))
        except (PlumblineError, TimeoutError) as error:
            log.warning(
                "Slack did not say who is in a channel, so nothing public is shown",
                channel=channel_id,
                reason=str(error),
            )
            return True
        self._channels[channel_id] = has_guests, now + KEPT
        return has_guests

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _current_people(self) -> _People | None:
        """Return the known people; None before the first answer.

        Reading continues in the background for large workspaces.
        """
        age = self._clock.now() - self._people.read_at if self._people else BELIEVED_FOR
        if age >= RENEWED_AFTER:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
            await asyncio.wait([self._reading], timeout=GUESTS_TIMEOUT if age >= BELIEVED_FOR else 0)
        people = self._people
        return people if people and self._clock.now() - people.read_at < BELIEVED_FOR else None

    async def _read(self) -> None:
        try:
            identity = await self._identity.answer()
            people = [
                person
                for named in await workspaces(self._client, identity)
                for person in await self._members("users.list", **named)
            ]
        except PlumblineError as error:
            log.warning("Slack did not say who is a guest, so nothing public is shown", reason=str(error))
            return
        guests = frozenset(person["id"] for person in people if _is_outsider(person, identity))
        self._people = _People(
            guests,
            frozenset(person["id"] for person in people) - guests,
            self._clock.now(),
            is_organisation(identity),
        )
        self._channels.clear()

    async def _members(self, method: str, **arguments: str) -> list[Any]:
        read = pages(self._client, method, {"limit": PEOPLE_PAGE, **arguments})
        return [member async for page in read for member in page.get("members", ())]


def _is_outsider(person: dict[str, Any], own: dict[str, Any]) -> bool:
    team, enterprise = own.get("team_id"), (person.get("enterprise_user") or {}).get("enterprise_id")
    is_of_team = person.get("team_id", team) == team or (enterprise and enterprise == own.get("enterprise_id"))
    return not is_of_team or any(person.get(flag) for flag in GUEST)


PAGE = 1_000  # messages per request; the maximum of Slack
MAX_PAGES = 20  # of a thread; of a longer one, its end is read too, and its middle is missing
END = 86_400.0  # seconds that the end of a longer thread covers


class SlackThreads:
    """Implements `core.ports.ThreadReader`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._identity = BotIdentity(client)

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        if place.thread is None:
            return ()
        bot = await self._identity.user_id()
        try:
            messages = await self._messages(place.channel, place.thread, before.timestamp())
        except MessageNotFound:
            return ()
        turns = [message for message in messages if float(message["ts"]) < before.timestamp() and _text_of(message)]
        chosen = turns if len(turns) <= limit else [turns[0], *turns[len(turns) - limit + 1 :]]
        return tuple(
            Turn(
                Speaker.PLUMBLINE if message.get("user") == bot else Speaker.PERSON,
                plain_text(_text_of(message), bot),
            )
            for message in chosen
        )

    async def _messages(self, channel: str, thread: str, before: float) -> list[dict[str, Any]]:
        """Return the thread's messages, oldest first; of one that is too long, its beginning and its end."""
        options = {"channel": channel, "ts": thread, "limit": PAGE}
        read = [page async for page in pages(self._client, "conversations.replies", options, MAX_PAGES)]
        if (read[-1].get("response_metadata") or {}).get("next_cursor"):
            log.warning("thread read in part", channel=channel, thread=thread, missing="its middle")
            end = options | {"oldest": f"{before - END:.6f}"}
            read += [page async for page in pages(self._client, "conversations.replies", end, MAX_PAGES)]
        # Slack begins every list with the first message of the thread.
        return list({message["ts"]: message for page in read for message in page.get("messages", ())}.values())


def _text_of(message: dict[str, Any]) -> str:
    """Return the text of a message; empty if it was deleted."""
    return "" if message.get("subtype") == "tombstone" else Content.model_validate(message).seen


MAX_NAME = 80  # characters


class SlackFiles:
    """Implements `core.ports.FileReader`. Needs the scope `files:read`."""

    def __init__(self, session: aiohttp.ClientSession, bot_token: str, api_url: str) -> None:
        self._session = session
        self._headers = {"Authorization": f"Bearer {bot_token}"}
        self._api = URL(api_url)

    async def text(self, file: SharedFile) -> str:
        if not self._is_slack_s(file.url):
            raise ChatUnavailable("it is not on Slack")
        return await text_of_file(self._session, file, self._headers)

    def _is_slack_s(self, address: str) -> bool:
        """Return whether the token may be sent to this address: `files.slack.com` beside `slack.com/api`."""
        try:
            url = URL(address)
        except ValueError:
            return False
        host, own = url.host or "", self._api.host or ""
        is_own = host == own or host.endswith(f".{own}")
        return is_own and (url.scheme, url.port) == (self._api.scheme, self._api.port)


def shared_files(files: Any) -> tuple[SharedFile, ...]:
    """Return the text files among the `files` of a message. Untrusted."""
    return tuple(_texts(files))[:MAX_FILES] if isinstance(files, list) else ()


def _texts(files: list[Any]) -> Iterator[SharedFile]:
    for each in files:
        if not isinstance(each, dict):
            continue
        name, url = each.get("name"), each.get("url_private_download") or each.get("url_private")
        if isinstance(name, str) and isinstance(url, str) and (each.get("mode") == "snippet" or is_text(name)):
            yield SharedFile(name[:MAX_NAME], url)


def question_id(channel: str, event: str) -> str:
    return f"slack:{channel}:{event}"


def moment(timestamp: str) -> datetime:
    return datetime.fromtimestamp(float(timestamp), UTC)
