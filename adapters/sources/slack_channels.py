"""Slack channels through the Web API, and the conversion of threads to documents, for exports too.

https://docs.slack.dev/reference/methods/conversations.history ·
https://docs.slack.dev/reference/methods/conversations.replies

Slack reports no changes. Each run lists a channel's top-level messages, which is cheap, and reads the replies of
threads with new activity. Edits and deletions of replies are invisible in that list, so every thread is read again once
a week.

https://docs.slack.dev/messaging/formatting-message-text/ · https://docs.slack.dev/reference/events/message/
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from slack_sdk.web.async_client import AsyncWebClient

from adapters.section import EnvironmentName, Host
from adapters.slack.client import call, pages, refusal_code, slack_reader
from adapters.slack.payloads import Content
from adapters.slack.settings import SlackSettings
from adapters.sources.chat_threads import FAMILY, thread_title
from adapters.sources.json_lines import messages_in
from adapters.sources.section import SourceSection, cursor_of, mark, positions_of
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.errors import ChatUnavailable, MessageNotFound, SourceUnavailable
from core.model.text import thread_text, thread_urls
from core.ports import Clock, LeftOut, SourceChanges

PAGE = 200  # users or replies per response; Slack may return fewer
HISTORY_PAGE = 100  # messages per response: the replies of their threads take up to two minutes, which a kill repeats
FULL_READ_EVERY = timedelta(days=7)
CLOCK_SKEW = timedelta(minutes=10)  # maximum lead of our clock over Slack's
GONE = "channel_not_found"


class _SlackRefusal(SourceUnavailable):
    """Slack refused a request. `code` is Slack's error code."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class _Position:
    """The position in a channel.

    Everything up to `since` (seconds) was read, and every thread at `full_at`. `mark` is a digest of the readers at
    that time. During a reading, which goes from the newest message down, `before` is the last message read, and `began`
    and `full` are its start and kind.
    """

    mark: str = ""
    since: float = 0.0
    full_at: float = 0.0
    before: str = ""
    began: float = 0.0
    full: bool = True


_POSITIONS = TypeAdapter(dict[str, _Position])


@dataclass(frozen=True, slots=True)
class _Workspace:
    url: str
    bot_id: str
    bot_user: str
    directory: Directory


class SlackChannelsSource:
    """The threads of some channels, each a document. The bot's own messages are left out."""

    def __init__(self, name: str, client: AsyncWebClient, channels: Sequence[str], clock: Clock) -> None:
        """Create the source. `channels` are the ids of channels that the bot is a member of."""
        self.name = name
        self._client = client
        self._channels = channels
        self._clock = clock
        self._left_out: list[LeftOut] = []

    async def check(self) -> None:
        await self._call("auth.test", {})
        for channel_id in self._channels:
            try:
                await self._call("conversations.history", {"channel": channel_id, "limit": "1"})
            except _SlackRefusal as error:
                raise SourceUnavailable(f"{channel_id}: {error}") from error

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        positions = positions_of(cursor, _POSITIONS)
        self._left_out.clear()
        workspace = await self._workspace()
        refusals = list[str]()
        for channel_id in self._channels:
            reading = self._read(channel_id, positions.get(channel_id, _Position()), workspace, known_ids)
            try:
                async for documents, removed, position in reading:
                    positions[channel_id] = position
                    yield SourceChanges(tuple(documents), removed, cursor_of(positions))
            except _SlackRefusal as error:
                # Only this channel fails; the others are read.
                refusals.append(f"{channel_id}: {error}")
                if error.code == GONE and (ids := self._indexed(channel_id, known_ids)):
                    # Deleted, or private without the bot: its current readers are unknown.
                    positions.pop(channel_id, None)
                    yield SourceChanges((), ids, cursor_of(positions))
        wanted = tuple(f"{self.name}/{channel_id}/" for channel_id in self._channels)
        left = frozenset(known_id for known_id in known_ids if not known_id.startswith(wanted))
        kept = {key: value for key, value in positions.items() if key in self._channels}
        yield SourceChanges((), left, cursor_of(kept), tuple(self._left_out))
        if refusals:
            raise SourceUnavailable(" ".join(refusals))

    def _indexed(self, channel_id: str, known_ids: frozenset[str]) -> frozenset[str]:
        return frozenset(known_id for known_id in known_ids if known_id.startswith(f"{self.name}/{channel_id}/"))

    async def _read(
        self, channel_id: str, position: _Position, workspace: _Workspace, known_ids: frozenset[str]
    ) -> AsyncIterator[tuple[list[Document], frozenset[str], _Position]]:
        """Read a channel page by page: first complete an interrupted reading, then read what happened since."""
        channel = await self._channel(channel_id, workspace)
        resumed = bool(position.before) and position.mark == mark(channel.name, channel.readers)
        for _ in range(2 if resumed else 1):
            position = self._next(position, mark(channel.name, channel.readers))
            while True:
                documents, gone, position = await self._read_page(channel, position, workspace, known_ids)
                yield documents, gone, position
                if not position.before:
                    break

    async def _read_page(
        self, channel: SlackChannel, position: _Position, workspace: _Workspace, known_ids: frozenset[str]
    ) -> tuple[list[Document], frozenset[str], _Position]:
        """Read one page, from the newest message down. It contains everything between two times."""
        prefix = f"{self.name}/{channel.id}/"
        indexed = {known_id.removeprefix(prefix) for known_id in self._indexed(channel.id, known_ids)}
        messages, finished = await self._page(channel.id, position.before)
        upper = float(position.before or "inf")
        oldest = min((message.ts for message in messages), key=float, default="")
        lower = 0.0 if finished else float(oldest)
        threads = [each for each in messages if each.is_thread and not _is_own(each, workspace)]
        # Slack does not tell when a message was deleted, whose text may be indexed.
        due = [
            each
            for each in threads
            if position.full or each.ts not in indexed or each.active_at >= position.since or not each.is_said
        ]
        documents = [document for each in due if (document := await self._thread(channel, each, workspace))]
        held = {each.ts for each in threads} - {each.ts for each in due} | {
            each.id.rpartition("/")[2] for each in documents
        }
        gone = frozenset(f"{prefix}{ts}" for ts in indexed - held if lower <= float(ts) < upper)
        return documents, gone, self._ended(position) if finished else replace(position, before=oldest)

    def _next(self, position: _Position, mark: str) -> _Position:
        """Return the interrupted reading, or a new one: of everything if the readers changed."""
        now = self._clock.now()
        began = (now - CLOCK_SKEW).timestamp()
        if position.mark != mark:
            return _Position(mark=mark, began=began)
        if position.before:
            return position
        is_due = now.timestamp() - position.full_at >= FULL_READ_EVERY.total_seconds()
        return replace(position, began=began, full=is_due)

    @staticmethod
    def _ended(position: _Position) -> _Position:
        full_at = position.began if position.full else position.full_at
        return _Position(position.mark, since=position.began, full_at=full_at, full=False)

    async def _page(self, channel_id: str, before: str) -> tuple[list[Message], bool]:
        arguments = {"channel": channel_id, "limit": str(HISTORY_PAGE)} | ({"latest": before} if before else {})
        answer = await self._call("conversations.history", arguments)
        messages, more = self._messages(answer, channel_id), bool(answer.get("has_more"))
        if more and not any(float(message.ts) < float(before or "inf") for message in messages):
            raise SourceUnavailable(f"{self.name}: Slack returned a page of {channel_id} without earlier messages.")
        return messages, not more

    async def _thread(self, channel: SlackChannel, root: Message, workspace: _Workspace) -> Document | None:
        messages = [root]
        if root.reply_count:
            arguments = {"channel": channel.id, "ts": root.ts}
            try:
                replies = [
                    each
                    async for answer in self._pages("conversations.replies", arguments)
                    for each in self._messages(answer, channel.name)
                ]
            except _SlackRefusal as error:
                if error.code != "thread_not_found":
                    raise
                return None
            messages += [each for each in replies if each.ts != root.ts and not _is_own(each, workspace)]
        return thread_document(self.name, channel, messages, workspace.directory)

    async def _channel(self, channel_id: str, workspace: _Workspace) -> SlackChannel:
        info = (await self._call("conversations.info", {"channel": channel_id})).get("channel") or {}
        if info.get("is_im") or info.get("is_mpim"):
            raise _SlackRefusal("The channel contains direct messages, which Plumbline does not read.")
        arguments = {"channel": channel_id}
        pages = [answer.get("members", ()) async for answer in self._pages("conversations.members", arguments)]
        return SlackChannel(
            id=channel_id,
            name=str(info.get("name") or channel_id),
            private=info.get("is_private") is not False,
            members=tuple(sorted(str(member) for page in pages for member in page)),
            archive=f"{workspace.url}archives/{channel_id}" if workspace.url else "",
        )

    async def _workspace(self) -> _Workspace:
        identity = await self._call("auth.test", {})
        people = {
            str(user["id"]): names
            async for answer in self._pages("users.list", {})
            for user in answer.get("members", ())
            if not user.get("is_bot") and (names := names_of(user))
        }
        bot_id, bot_user = str(identity.get("bot_id") or ""), str(identity.get("user_id") or "")
        return _Workspace(str(identity.get("url") or ""), bot_id, bot_user, Directory(people))

    async def _pages(self, method: str, arguments: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        with _as_source_errors():
            async for page in pages(self._client, method, {"limit": PAGE, **arguments}):
                yield page

    async def _call(self, method: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        with _as_source_errors():
            return await call(method, self._client.api_call(method, http_verb="GET", params=dict(arguments)))

    def _messages(self, answer: Mapping[str, Any], path: str) -> list[Message]:
        return messages_in(answer.get("messages", ()), Message, self._left_out, path)


@contextmanager
def _as_source_errors() -> Generator[None]:
    """Raise the errors of the chat as those of a source."""
    try:
        yield
    except (ChatUnavailable, MessageNotFound) as error:
        if code := refusal_code(error):
            raise _SlackRefusal(str(error), code) from error
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


def _is_own(message: Message, workspace: _Workspace) -> bool:
    return message.user == workspace.bot_user or (bool(workspace.bot_id) and message.bot_id == workspace.bot_id)


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
        client = slack_reader(secret, host.settings.chat(SlackSettings).api_url, host.session)
        return SlackChannelsSource(self.name, client, self.channels, host.clock)


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
