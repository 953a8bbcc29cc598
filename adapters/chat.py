"""A chat, as its package in `adapters` declares it: by a subclass of `ChatSettings` in its module `chat`.

Nothing lists the chats. `CHATS` finds them, and those of plugins, and the wiring opens those whose settings are there.

With it are a messenger that keeps to the rate limits of its platform, in which a call that is too early learns when its turn
comes, the finding of a check of `plumbline doctor`, and the text files that people share in chats.
"""

from __future__ import annotations

import asyncio
import pkgutil
import time
from asyncio import Lock
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import aiohttp
from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from yarl import URL

import adapters
from adapters.http import CHAT, HttpAnswer, exchange
from adapters.section import Host, Registry, declared
from core.model.conversation import Channel, MessageReference, Place, Platform, SharedFile, cut_message
from core.model.errors import ChatBusy, ChatUnavailable
from core.model.messages import Message
from core.model.running import LimiterState, PostingRate, new_limiter_state
from core.ports import (
    AudienceAt,
    CardRefresher,
    ChannelReader,
    FileReader,
    Forms,
    HomeOf,
    Inbox,
    Messenger,
    OpenToAll,
    RateLimiter,
    ThreadReader,
)

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from aiohttp import web
    from sqlalchemy.ext.asyncio import AsyncEngine

SHORT = 0.5  # seconds to wait here; longer waits are left to the workflow, which holds no resources meanwhile
EARLY = 0.4  # seconds by which the workflow returns before its turn, so as not to miss it
MAX_LANES = 1_000  # lanes for which the last response is remembered
PAUSE = 30.0  # seconds of rest if a platform asks to wait without stating how long


# The state of a lane and the time → its new state, and the seconds to wait.
LaneChange = Callable[[LimiterState, float], tuple[LimiterState, float]]


@dataclass(frozen=True, slots=True)
class Budget:
    """The rate limits of a platform: seconds between posts, and between edits, in a channel.

    `burst` of them may be sent at once after a rest; each still uses its share of the rate.
    """

    post: float
    edit: float
    burst: int = 1


@dataclass(slots=True)
class Writer:
    """The writer of one lane in this process. It sends each message after the response to the previous one."""

    rate: PostingRate
    writing: Lock = field(default_factory=Lock)
    answered_at: float = -inf  # by the process's own clock; earlier by the saved burst

    def pause(self, now: float) -> float:
        """Return the seconds until the platform can accept the next message, counted from the last response."""
        return max(self.answered_at + self.rate.interval - now, 0.0)

    def answered(self, now: float) -> None:
        self.answered_at = max(now - self.rate.saved, self.answered_at + self.rate.interval)


class RateLimitedMessenger:
    """Implements `core.ports.Messenger` over another messenger.

    Posts and edits take turns in each channel, in request order, across all users of `limiter`. Several waiting edits of
    one message share a turn, in which the newest is made. A platform's request to wait applies to that channel only.
    """

    def __init__(
        self, messenger: Messenger, budget: Budget, limiter: RateLimiter, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._messenger = messenger
        self._budget = budget
        self._limiter = limiter
        self._now = now
        self._writers: OrderedDict[str, Writer] = OrderedDict()

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        async with self._turn("post", place, self._budget.post, intent):
            return await self._messenger.post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        async with self._turn("edit", reference.place, self._budget.edit, reference.message_id):
            await self._messenger.edit(reference, message)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return await self._messenger.find(place, intent)

    async def delete(self, reference: MessageReference) -> None:
        await self._messenger.delete(reference)

    async def link(self, reference: MessageReference) -> str:
        return await self._messenger.link(reference)

    @asynccontextmanager
    async def _turn(self, kind: str, place: Place, interval: float, ticket: str) -> AsyncGenerator[None]:
        """Wait for this ticket's turn. Raises ChatBusy with the remaining time if that takes long."""
        lane = f"{place.platform}:{kind}:{place.channel}"
        rate = PostingRate(interval, (self._budget.burst - 1) * interval)
        while wait := await self._limiter.take(lane, ticket, rate):
            if wait > SHORT:
                raise ChatBusy("The chat accepts one message at a time. This one waits for its turn.", wait - EARLY)
            await asyncio.sleep(wait)
        writer = self._writer(lane, rate)
        async with writer.writing:
            await asyncio.sleep(writer.pause(self._now()))
            try:
                yield
            except ChatBusy as error:
                await self._limiter.rest(lane, error.retry_after or PAUSE, rate)
                raise
            finally:
                writer.answered(self._now())
                await self._limiter.answered(lane, rate)

    def _writer(self, lane: str, rate: PostingRate) -> Writer:
        writer = self._writers.setdefault(lane, Writer(rate))
        self._writers.move_to_end(lane)
        if len(self._writers) > MAX_LANES:
            self._writers.popitem(last=False)
        return writer


class LocalRateLimiter:
    """Implements `core.ports.RateLimiter` in memory. `now` is a clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lanes: OrderedDict[str, LimiterState] = OrderedDict()

    async def take(self, lane: str, ticket: str, rate: PostingRate) -> float:
        return await self._change(lane, rate, lambda state, now: state.take(ticket, rate, now))

    async def answered(self, lane: str, rate: PostingRate) -> None:
        await self._change(lane, rate, lambda state, now: (state.answered(rate, now), 0.0))

    async def rest(self, lane: str, seconds: float, rate: PostingRate) -> None:
        await self._change(lane, rate, lambda state, now: (state.rest(seconds, rate, now), 0.0))

    async def _change(self, name: str, rate: PostingRate, change: LaneChange) -> float:
        """Change a lane, and return the seconds to wait."""
        now = self._now()
        self._lanes[name], wait = change(self._lanes.get(name) or new_limiter_state(rate, now), now)
        self._lanes.move_to_end(name)
        if len(self._lanes) > MAX_LANES:
            self._lanes.popitem(last=False)
        return wait


@dataclass(frozen=True, slots=True)
class Chat:
    """An open chat: its messenger, the handler of its requests, its rate limits, and its readers of threads, files and channels.

    `audience_at` returns the current audience of a place, None if plumbline.yaml tells it.
    """

    messenger: Messenger
    handle: Callable[[web.Request], Awaitable[web.StreamResponse]]
    budget: Budget
    threads: ThreadReader | None = None
    audience_at: AudienceAt | None = None
    files: FileReader | None = None
    channels: ChannelReader | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatHost(Host):
    """The parts of the process that a chat needs. `stack` closes it.

    `adopting` returns the channels in which what other bots post is adopted, now.
    `home_of` and `forms` are for chats with pages of people and with forms. `refresher_of` returns the renderer for chats
    that ask for a message again, from the chat's links to messages and its audiences.
    """

    channels: Sequence[Channel]
    examples: Sequence[str]
    adopting: Callable[[], Awaitable[Collection[Place]]]
    inbox: Inbox
    forms: Forms
    home_of: HomeOf
    refresher_of: Callable[[Callable[[MessageReference], Awaitable[str]], AudienceAt], CardRefresher]
    engine: AsyncEngine
    stack: AsyncExitStack


class ChatSettings(BaseSettings):
    """The environment variables of a chat, and the chat that they open."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    platform: ClassVar[Platform]
    title: ClassVar[str]
    path: ClassVar[str]  # of the route that its requests arrive at
    required: ClassVar[tuple[str, ...]]  # the variables without which it is off, first the one that turns it on
    has_playground: ClassVar[bool] = False  # whether programs on this machine may use it without these

    @property
    def is_on(self) -> bool:
        """Return whether the chat has its credentials."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise ConfigurationError if a variable is missing although others are set."""

    @property
    def way_in(self) -> str:
        """Return the variable because of which other machines can reach the bot; empty if they cannot."""
        return self.required[0] if self.is_on else ""

    @property
    def is_proxied(self) -> bool:
        """Return whether a proxy on this machine must forward the chat's requests to the bot."""
        return bool(self.way_in)

    async def findings(self, host: Host, channels: Sequence[Channel]) -> AsyncIterator[CheckResult]:
        """Yield what `plumbline doctor` says about the chat, which is on."""
        yield CheckResult(self.title, "is on")

    def openness(self, host: Host, engine: AsyncEngine) -> OpenToAll | None:
        """Return the look-up of whether the whole workspace may read a channel now; None if plumbline.yaml tells it.

        The look-up raises PlumblineError if the chat does not tell.
        """

    async def open(self, host: ChatHost) -> Chat:
        """Open the chat until the host's stack is closed; without credentials, its playground."""
        raise NotImplementedError


def secret(value: SecretStr | None) -> str:
    """Return a secret; empty if there is none."""
    return value.get_secret_value() if value is not None else ""


def _platforms(value: Any) -> Iterable[Platform]:
    is_chat = isinstance(value, type) and issubclass(value, ChatSettings) and value is not ChatSettings
    return {value.platform} - {Platform.CONSOLE, Platform.TERMINAL} if is_chat else ()


@cache
def chat_modules() -> Sequence[ModuleType]:
    names = (f"{adapters.__name__}.{each.name}.chat" for each in pkgutil.iter_modules(adapters.__path__) if each.ispkg)
    return [import_module(name) for name in sorted(names) if find_spec(name)]


CHATS = Registry[type[ChatSettings]](
    lambda _: declared(chat_modules(), _platforms), _platforms, {"plumbline.chats": EntryPoint.load}
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check result. `remedy` says what to do, empty if all is well; a `fatal` finding makes the exit code 1."""

    what: str
    result: str
    remedy: str = ""
    fatal: bool = True

    @property
    def well(self) -> bool:
        return not self.remedy


DOCTOR = "plumbline-doctor"  # the user agent of its requests to the bot


async def probe(session: aiohttp.ClientSession, address: str, **options: Any) -> HttpAnswer:
    """Post to a public address of the bot and return the answer. Raises ChatUnavailable if there is none."""
    return await exchange(session, "POST", address, system="The address", errors=CHAT, seconds=5.0, **options)


MAX_FILES = 3  # of one message
MAX_BYTES = 2 * 1024 * 1024  # read of one file
TIMEOUT = aiohttp.ClientTimeout(total=20)
TEXT_ENDINGS = frozenset(
    "conf cfg csv env err go ini java js json jsonl log md out properties py rb rs sh sql text toml trace ts txt xml yaml yml".split()
)


def is_text(name: str) -> bool:
    """Return whether a file is text, by the ending of its name."""
    return name.rpartition(".")[2].lower() in TEXT_ENDINGS


async def text_of_file(
    session: aiohttp.ClientSession, file: SharedFile, headers: Mapping[str, str] | None = None
) -> str:
    """Return the beginning and the end of a file's text, MAX_MESSAGE characters at most.

    Follows no redirect, so that no other host receives `headers`. Of a file larger than MAX_BYTES, the rest is not read.
    Raises ChatUnavailable.
    """
    content = bytearray()
    try:
        async with session.get(
            URL(file.url, encoded=True), headers=headers, allow_redirects=False, timeout=TIMEOUT
        ) as response:
            if response.status != 200 or response.content_type == "text/html":  # a page to sign in
                raise ChatUnavailable("the chat does not let me read it")
            async for chunk in response.content.iter_any():
                content += chunk
                if len(content) >= MAX_BYTES:
                    break
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ChatUnavailable("the chat did not send it in time") from error
    if b"\0" in content:
        raise ChatUnavailable("it is not text")
    return cut_message(content[:MAX_BYTES].decode("utf-8", "replace"))
