"""Slack channels through the Web API, and exports of a workspace.

https://docs.slack.dev/reference/methods/conversations.history ·
https://docs.slack.dev/reference/methods/conversations.replies

Slack reports no changes. Each run lists a channel's top-level messages, which is cheap, and reads the replies of
threads with new activity. Edits and deletions of replies are invisible in that list, so every thread is read again once
a week.

https://docs.slack.dev/messaging/formatting-message-text/ · https://docs.slack.dev/reference/events/message/

An export is the archive from an administrator, or its unpacked folder. It contains `channels.json` (public), `groups.json`
(private) and `users.json`, and a folder per channel with one file of messages per day:
https://slack.com/help/articles/220556107. Direct messages (`dms.json`, `mpims.json`) are ignored, and other folders that
belong to no listed channel are named.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from slack_sdk.web.async_client import AsyncWebClient

from adapters.http import PATIENT, Gone, Refused
from adapters.section import EnvironmentName, Host
from adapters.slack.client import call, pages, refusal_code, slack_client
from adapters.slack.organisation import is_organisation, workspaces
from adapters.slack.payloads import Content
from adapters.slack.settings import SlackSettings
from adapters.sources import chat_threads
from adapters.sources.chat_threads import CLOCK_SKEW, MAX_MEMBERS, ChatChannel, People, thread_document
from adapters.sources.section import (
    Archive,
    FileSection,
    Indexed,
    ListingPart,
    Position,
    SourcePlace,
    SourcePlaces,
    SourceSection,
    TrackedSource,
    mark,
    messages_in,
    open_archive,
)
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import ChatUnavailable, MessageNotFound, SourceUnavailable
from core.ports import Clock, LeftOut

PAGE = 200  # users or replies per response; Slack may return fewer
HISTORY_PAGE = 100  # messages per response: the replies of their threads take up to two minutes, which a kill repeats
FULL_READ_EVERY = timedelta(days=7)
GONE = frozenset({"channel_not_found", "thread_not_found"})


@dataclass(frozen=True, slots=True)
class _Progress:
    """Everything up to `since` (seconds) was read.

    During a reading, which goes from the newest message down, `before` is the last message read, and `began` and `full`
    are its start and whether it is of every thread.
    """

    since: float = 0.0
    before: str = ""
    began: float = 0.0
    full: bool = True


_PROGRESS = TypeAdapter(_Progress)


class SlackChannelsSource(TrackedSource):
    """The threads of some channels, each a document. The bot's own messages are left out."""

    is_divided = True

    def __init__(self, name: str, client: AsyncWebClient, channels: Sequence[str], clock: Clock) -> None:
        """Create the source. `channels` are the ids of channels that the bot is a member of."""
        self.name = name
        self._client = client
        self._channels = channels
        self._clock = clock

    async def check(self) -> None:
        await _call(self._client, "auth.test", {})
        for channel_id in self._channels:
            try:
                await _call(self._client, "conversations.history", {"channel": channel_id, "limit": "1"})
            except Refused as error:
                raise SourceUnavailable(f"{channel_id}: {error}") from error

    async def places(self) -> SourcePlaces:
        identity = await _call(self._client, "auth.test", {})
        with _as_source_errors():
            people = {
                str(user["id"]): names
                for named in await workspaces(self._client, identity)
                async for answer in pages(self._client, "users.list", {"limit": PAGE, **named})
                for user in answer.get("members", ())
                if not user.get("is_bot") and (names := names_of(user))
            }
        workspace = SlackWorkspace(
            people,
            {},
            url=str(identity.get("url") or "").rstrip("/"),
            bot_id=str(identity.get("bot_id") or ""),
            bot_user=str(identity.get("user_id") or ""),
            is_closed=is_organisation(identity),
        )
        return SourcePlaces(
            [_ChannelPlace(self.name, self._client, each, workspace, self._clock) for each in self._channels]
        )


class _ChannelPlace(SourcePlace):
    def __init__(
        self, source: str, client: AsyncWebClient, channel_id: str, workspace: SlackWorkspace, clock: Clock
    ) -> None:
        self.id = self.label = channel_id
        self._source = source
        self._client = client
        self._workspace = workspace
        self._clock = clock

    async def state(self) -> str:
        info = (await _call(self._client, "conversations.info", {"channel": self.id})).get("channel") or {}
        if info.get("is_im") or info.get("is_mpim"):
            raise Refused("The channel contains direct messages, which Plumbline does not read.", 0)
        listed = _pages(self._client, "conversations.members", {"channel": self.id})
        members = [str(member) async for page in listed for member in page.get("members", ())]
        self._channel = channel_of(
            self.id,
            str(info.get("name") or self.id),
            members,
            self._workspace,
            is_private=info.get("is_private") is not False,
        )
        return mark(self._channel.name, self._channel.readers)

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        """Read the channel page by page: first complete an interrupted reading, then read what happened since."""
        progress = _PROGRESS.validate_json(position.link or "{}")
        for _ in range(2 if progress.before else 1):
            if not progress.before:
                now = self._clock.now()
                is_full = now.timestamp() - position.full_at >= FULL_READ_EVERY.total_seconds()
                progress = replace(progress, began=(now - CLOCK_SKEW).timestamp(), full=is_full)
            is_last = False
            while not is_last:
                chunk, oldest = await self._read_page(progress, indexed)
                is_last = not oldest
                progress = replace(progress, before=oldest)
                if is_last:
                    full_at = progress.began if progress.full else position.full_at
                    position, progress = replace(position, full_at=full_at), _Progress(since=progress.began)
                position = replace(position, link=_PROGRESS.dump_json(progress).decode())
                yield replace(chunk, position=position)

    async def _read_page(self, progress: _Progress, indexed: Indexed) -> tuple[ListingPart, str]:
        """Read one page, from the newest message down, and return the time of its oldest message; empty for the last page.

        A page contains everything between two times.
        """
        left_out = list[LeftOut]()
        messages, is_last = await self._page(progress.before, left_out)
        upper = float(progress.before or "inf")
        oldest = "" if is_last else min((message.ts for message in messages), key=float)
        threads = [each for each in messages if each.is_thread and not self._is_own(each)]
        # Slack does not tell when a message was deleted, whose text may be indexed.
        due = [
            each
            for each in threads
            if progress.full or each.ts not in indexed or each.active_at >= progress.since or not each.is_said
        ]
        documents = [document for each in due if (document := await self._thread(each, left_out))]
        held = {each.ts for each in threads} - {each.ts for each in due} | {
            each.id.rpartition("/")[2] for each in documents
        }
        gone = {ts for ts in indexed.keys() - held if float(oldest or 0) <= float(ts) < upper}
        return ListingPart(documents=documents, gone=gone, left_out=left_out), oldest

    async def _page(self, before: str, left_out: list[LeftOut]) -> tuple[list[Message], bool]:
        arguments = {"channel": self.id, "limit": str(HISTORY_PAGE)} | ({"latest": before} if before else {})
        answer = await _call(self._client, "conversations.history", arguments)
        messages = messages_in(answer.get("messages", ()), Message, left_out, self.id)
        more = bool(answer.get("has_more"))
        if more and not any(float(message.ts) < float(before or "inf") for message in messages):
            raise SourceUnavailable(f"{self._source}: Slack returned a page of {self.id} without earlier messages.")
        return messages, not more

    async def _thread(self, root: Message, left_out: list[LeftOut]) -> Document | None:
        messages = [root]
        if root.reply_count:
            try:
                async for answer in _pages(self._client, "conversations.replies", {"channel": self.id, "ts": root.ts}):
                    messages += messages_in(answer.get("messages", ()), Message, left_out, self._channel.name)
            except Gone:
                return None
        theirs = [root, *(each for each in messages[1:] if each.ts != root.ts and not self._is_own(each))]
        return document_of(self._source, self._channel, root.ts, theirs, self._workspace)

    def _is_own(self, message: Message) -> bool:
        return message.user == self._workspace.bot_user or (
            bool(self._workspace.bot_id) and message.bot_id == self._workspace.bot_id
        )


async def _pages(client: AsyncWebClient, method: str, arguments: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    with _as_source_errors():
        async for page in pages(client, method, {"limit": PAGE, **arguments}):
            yield page


async def _call(client: AsyncWebClient, method: str, arguments: Mapping[str, str]) -> dict[str, Any]:
    with _as_source_errors():
        return await call(method, client.api_call(method, http_verb="GET", params=dict(arguments)))


@contextmanager
def _as_source_errors() -> Generator[None]:
    """Raise the errors of the chat as those of a source."""
    try:
        yield
    except (ChatUnavailable, MessageNotFound) as error:
        if code := refusal_code(error):
            raise (Gone if code in GONE else Refused)(str(error), 0) from error
        raise SourceUnavailable(str(error), getattr(error, "retry_after", None)) from error


def names_of(user: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a Slack user, with the displayed one first."""
    profile: Mapping[str, Any] = user.get("profile") or {}
    named = (
        profile.get("display_name"),
        profile.get("real_name"),
        user.get("real_name"),
        user.get("name"),
        profile.get("email"),
    )
    return tuple(dict.fromkeys(str(name) for name in named if name))


class SlackChannelsSection(SourceSection):
    """Slack channels, by id. The bot with the token in `token_env` must be a member of each."""

    kind: Literal["slack_channels"]
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    token_env: EnvironmentName = "SLACK_BOT_TOKEN"  # noqa: S105 — the name of a variable

    @property
    def place(self) -> str:
        return ", ".join(self.channels)

    def open(self, host: Host) -> SlackChannelsSource:
        secret = host.settings.secret(self.token_env, self.name)
        api_url = host.settings.chat(SlackSettings).api_url
        client = slack_client(secret, api_url, host.session, PATIENT, only_reads=True)
        return SlackChannelsSource(self.name, client, self.channels, host.clock)


_SPOKEN = frozenset({None, "thread_broadcast", "file_share", "me_message", "bot_message"})
"""Subtypes of messages with content; the others report joins, topics, deletions and similar events."""

_CODE = re.compile(r"\n?```\n?(.*?)\n?```\n?|```", re.DOTALL)
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
    def is_by_bot(self) -> bool:
        return self.bot_id is not None or self.subtype == "bot_message"

    @property
    def is_thread(self) -> bool:
        """Return whether it can begin a document.

        A bot's message can only if somebody replied, and so can one that is deleted, or that reports an event.
        """
        is_root = self.thread_ts in (None, self.ts)
        return is_root and (self.reply_count > 0 or (self.is_said and not self.is_by_bot))


@dataclass(frozen=True, slots=True)
class SlackWorkspace:
    """A workspace at `url`, empty if unknown: the names of `people` by id (displayed name first), and of `channels`."""

    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    channels: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    bot_id: str = ""
    bot_user: str = ""
    is_closed: bool = False  # its public channels are not for everybody who has the bot

    def named(self, users: Iterable[str]) -> People:
        return tuple(self.people[user] for user in sorted(users) if user in self.people)


def channel_of(
    channel_id: str, name: str, members: Collection[str], workspace: SlackWorkspace, *, is_private: bool
) -> ChatChannel:
    """Return a channel, which everybody in the workspace may read, or its members. `members` are user ids."""
    here = f"channel:slack:{channel_id}"
    people = members if len(members) <= MAX_MEMBERS else ()
    private = frozenset({here, *(f"person:slack:{member}" for member in people)})
    readers = private if is_private or workspace.is_closed else frozenset({PUBLIC, here})
    return ChatChannel(channel_id, name, readers, workspace.named(members))


def document_of(
    source: str, channel: ChatChannel, root_ts: str, messages: Iterable[Message], workspace: SlackWorkspace
) -> Document | None:
    """Return the document of a thread, whose messages link to their permalinks.

    https://docs.slack.dev/reference/methods/chat.getPermalink
    """
    shown = list[chat_threads.ThreadMessage]()
    for each in messages:
        url = f"{workspace.url}/archives/{channel.id}/p{each.ts.replace('.', '')}" if workspace.url else ""
        if url and each.ts != root_ts:
            url = f"{url}?thread_ts={root_ts}&cid={channel.id}"
        mentioned = [match[1][1:] for match in _REFERENCE.finditer(each.seen) if match[1].startswith("@")]
        shown.append(
            chat_threads.ThreadMessage(
                id=each.ts,
                text=text_of(each, workspace) if each.is_said else None,
                sent_at=datetime.fromtimestamp(float(each.ts), UTC),
                url=url,
                changed_at=datetime.fromtimestamp(each.active_at, UTC),
                is_by_bot=each.is_by_bot and each.ts == root_ts,
                people=workspace.named({*mentioned, *filter(None, (each.user,))}),
            )
        )
    return thread_document(source, channel, root_ts, shown)


def text_of(message: Message, workspace: SlackWorkspace) -> str:
    """Return the text with names for ids. Files appear by name."""
    return _with_fences(unescape(_REFERENCE.sub(lambda match: _named(match, workspace), message.seen))).strip()


def _with_fences(text: str) -> str:
    """Put code fences on lines of their own, as Markdown requires. Unclosed fences are left alone."""
    return _CODE.sub(lambda match: "" if match[1] is None else f"\n```\n{match[1]}\n```\n", text)


def _named(match: re.Match[str], workspace: SlackWorkspace) -> str:
    """Return the readable form of `<@U1>`, `<#C1|name>`, `<!here>`, `<!subteam^S1|@team>` or `<https://…|text>`."""
    target, label = match[1], match[2] or ""
    match target[0]:
        case "@":
            names = workspace.people.get(target[1:])
            return f"@{names[0] if names else label.lstrip('@') or 'somebody'}"
        case "#":
            return f"#{label or workspace.channels.get(target[1:], 'channel')}"
        case "!":
            return label or f"@{target[1:].partition('^')[0]}"
        case _:
            return f"[{label}]({target})" if label and label != target else target


DIRECT = ("dms.json", "mpims.json")
MISREAD = ("cp437", "latin-1", "cp1252")  # encodings as which tools read names in UTF-8
NO_CHANNEL = "No channel in channels.json or groups.json has the name of this folder."


class SlackExportSource:
    """The threads of every channel in an export. Invalid messages are left out."""

    def __init__(self, name: str, path: Path, url: str = "") -> None:
        """Create the source.

        `url` is the workspace's address (`https://acme.slack.com`), which the export lacks; if empty, documents have no links.
        """
        self.name = name
        self._path = path
        self._url = url.rstrip("/")

    async def documents(self) -> AsyncIterator[Document | LeftOut]:
        for item in await asyncio.to_thread(lambda: list(self._items())):
            yield item

    def _items(self) -> Iterator[Document | LeftOut]:
        with open_archive(self._path) as archive:
            users = [*archive.rows("users.json"), *archive.rows("org_users.json")]
            public, private = archive.rows("channels.json"), archive.rows("groups.json")
            if not public and not private:
                raise SourceUnavailable(
                    f"{self._path} is not a Slack export: it has no channels.json and no groups.json."
                )
            people = {str(user.get("id")): names_of(user) for user in users if not user.get("is_bot")}
            channels = {str(row.get("id")): str(row.get("name")) for row in (*public, *private)}
            workspace = SlackWorkspace({user: names for user, names in people.items() if names}, channels, self._url)
            folders = _folders(archive, {str(row.get("name")) for row in (*public, *private)})
            for rows, is_private in ((public, False), (private, True)):
                for row in rows:
                    members, name = [*map(str, row.get("members") or ())], str(row.get("name") or "")
                    channel = channel_of(str(row.get("id") or ""), name, members, workspace, is_private=is_private)
                    yield from self._threads(archive, folders[name], channel, workspace)
            direct = {str(row.get(key)) for file in DIRECT for row in archive.rows(file) for key in ("id", "name")}
            yield from (LeftOut(folder, NO_CHANNEL) for folder in folders[""] if folder not in direct)
            yield from archive.left_out

    def _threads(
        self, archive: Archive, folders: list[str], channel: ChatChannel, workspace: SlackWorkspace
    ) -> Iterator[Document]:
        threads: defaultdict[str, list[Message]] = defaultdict(list)
        for file in chain.from_iterable(map(archive.files, folders)):
            for message in messages_in(archive.rows(file), Message, archive.left_out, file):
                threads[message.thread_ts or message.ts].append(message)
        documents = (document_of(self.name, channel, ts, each, workspace) for ts, each in threads.items())
        yield from filter(None, documents)


def _folders(archive: Archive, names: set[str]) -> defaultdict[str, list[str]]:
    """Return the folders of each channel by its name, and under "" those that belong to none.

    Some tools write the names of folders in another form: of Unicode, percent-encoded, or misread.
    """
    without = {_canonical(name): name for name in sorted(names - archive.folders)}
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for folder in sorted(archive.folders):
        folders[folder if folder in names else without.get(_canonical(folder), "")].append(folder)
    return folders


def _canonical(name: str) -> str:
    """Return a name in one form, whichever one a tool gave it."""
    name = unquote(name)
    for encoding in MISREAD:
        with suppress(UnicodeError):
            return unicodedata.normalize("NFC", name.encode(encoding).decode())
    return unicodedata.normalize("NFC", name)


class SlackExportSection(FileSection):
    """A Slack export. `url` is the workspace's address (`https://acme.slack.com`); if empty, threads have no links."""

    kind: Literal["slack_export"]
    url: str = ""

    def open(self, host: Host) -> SlackExportSource:
        return SlackExportSource(self.name, self.path, self.url)
