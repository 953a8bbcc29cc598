"""Wiring of the configured chats. Their SDKs are imported only if needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager

from adapters.chat import Chat, ChatHost
from adapters.rate_limits import LocalRateLimiter, RateLimitedMessenger
from adapters.store.rate_limiter import SqlRateLimiter
from bot.observability.telemetry import POSTS, timed
from bot.observability.tracing import span
from bot.wiring.application import Core, is_shared
from bot.wiring.ports import all_ports, home_pages
from core.model.conversation import MessageReference, Place, Platform
from core.model.messages import Message
from core.ports import AudienceAt, CardRefresher, Inbox, Messenger, SignallingMessenger
from handlers.common.ports import Ports
from handlers.common.show_waiting import QueuedQuestions
from handlers.questions.ask_in_form import AskInForm, ShownAgain


async def open_chats(core: Core, inbox: Inbox, stack: AsyncExitStack) -> dict[Platform, Chat]:
    """Open the configured chats, and the playgrounds of others, until the stack is closed."""
    ports, workspace = all_ports(core), core.workspace

    def refresher_of(link: Callable[[MessageReference], Awaitable[str]], audience_at: AudienceAt) -> CardRefresher:
        targets = ports.filing.targets
        return ShownAgain(core.store, workspace.policy, workspace.channels, link, targets, audience_at, core.openness)

    host = ChatHost(
        settings=core.settings,
        session=core.session,
        clock=core.clock,
        channels=workspace.channels,
        examples=workspace.examples,
        inbox=inbox,
        forms=AskInForm(ports),
        home_of=home_pages(core),
        refresher_of=refresher_of,
        engine=core.engine,
        stack=stack,
    )
    return {chat.platform: await chat.open(host) for chat in (*core.settings.chats, *core.settings.playgrounds)}


def messengers_of(core: Core, chats: Mapping[Platform, Chat], page: Messenger) -> dict[Platform, Messenger]:
    """Return the messengers of the chats, each at its own rate, and of the local page."""
    limiter = SqlRateLimiter(core.engine) if is_shared(core.engine) else LocalRateLimiter()
    messengers: dict[Platform, Messenger] = {Platform.CONSOLE: MeasuredMessenger(Platform.CONSOLE, page)}
    for platform, chat in chats.items():
        measured = MeasuredMessenger(platform, chat.messenger)
        messengers[platform] = RateLimitedMessenger(measured, chat.budget, limiter)
    return messengers


def ports_with(
    chats: Mapping[Platform, Chat], messengers: Mapping[Platform, Messenger], core: Core, queued: QueuedQuestions
) -> Ports:
    """Return the ports of the handlers, with all that the chats can do."""
    return all_ports(
        core,
        messengers,
        audiences={platform: chat.audience_at for platform, chat in chats.items() if chat.audience_at},
        threads={platform: chat.threads for platform, chat in chats.items() if chat.threads},
        files={platform: chat.files for platform, chat in chats.items() if chat.files},
        queued=queued,
    )


class MeasuredMessenger:
    """Implements `core.ports.Messenger` and `SignallingMessenger` by delegation."""

    def __init__(self, platform: Platform, messenger: Messenger) -> None:
        self._platform = platform
        self._messenger = messenger

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        with self._measured("post"):
            return await self._messenger.post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        with self._measured("edit"):
            await self._messenger.edit(reference, message)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        with self._measured("find"):
            return await self._messenger.find(place, intent)

    async def delete(self, reference: MessageReference) -> None:
        with self._measured("delete"):
            await self._messenger.delete(reference)

    async def link(self, reference: MessageReference) -> str:
        return await self._messenger.link(reference)

    async def signal(self, place: Place, text: str) -> float:
        messenger = self._messenger
        return await messenger.signal(place, text) if isinstance(messenger, SignallingMessenger) else 0.0

    @contextmanager
    def _measured(self, call: str) -> Generator[None]:
        with span(f"{self._platform} {call}"), timed(POSTS, self._platform, call):
            yield
