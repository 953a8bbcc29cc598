"""The local page for the messenger contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bs4 import BeautifulSoup

from adapters.console.console import Renderer
from adapters.console.messages import ConsoleMessage, ConsoleMessenger, Live, decode
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.errors import ChatUnavailable
from tests.fakes.clock import FakeClock
from tests.fakes.console_messages import InMemoryConsoleMessages


class ConsoleChat:
    """Implements `tests.fakes.chats.Chat`."""

    finds = True
    targets = False
    member = Person(Platform.CONSOLE, "asha")
    place = Place(Platform.CONSOLE, "incidents")

    def __init__(self) -> None:
        clock = FakeClock()
        self._messages = InMemoryConsoleMessages()
        self._renderer = Renderer(clock.now, "Marigold Ferries")
        self.messenger = ConsoleMessenger(self._messages, Live(), clock)
        self.successor = ConsoleMessenger(self._messages, Live(), clock)

    def shown(self, reference: MessageReference) -> str:
        message = self._message(reference)
        content = decode(message.kind, message.payload)
        html = self._renderer.fragment("_message.html", "article", message, content, {})
        return " ".join(BeautifulSoup(html, "lxml").get_text().split())

    def count(self) -> int:
        return len(self._messages.all())

    def only_for(self, reference: MessageReference) -> None:
        """Everybody sees it."""

    def thread_of(self, reference: MessageReference) -> str | None:
        thread = self._message(reference).thread
        return None if thread is None else str(thread)

    async def delete(self, reference: MessageReference) -> None:
        self._messages.delete(int(reference.message_id))

    def break_down(self) -> None:
        self._messages.broken = ChatUnavailable("The database is locked.")

    def ask_to_wait(self, seconds: int) -> None:
        self._messages.broken = ChatUnavailable("The database is busy.", retry_after=seconds)

    def _message(self, reference: MessageReference) -> ConsoleMessage:
        return next(message for message in self._messages.all() if message.id == int(reference.message_id))


@asynccontextmanager
async def console_chat() -> AsyncIterator[ConsoleChat]:
    yield ConsoleChat()
