"""The Messenger of the local page."""

from __future__ import annotations

from contextlib import suppress

from adapters.console.live import Live
from adapters.console.messages import ConsoleMessages, encode
from core.model.conversation import MessageReference, Place
from core.model.errors import MessageNotFound
from core.model.messages import Message, Notice
from core.ports import Clock

DELETED = "This message was deleted."


class ConsoleMessenger:
    """Implements `core.ports.Messenger`. A post is a row in the store, so `find` is exact."""

    def __init__(self, messages: ConsoleMessages, live: Live, clock: Clock) -> None:
        self._messages = messages
        self._live = live
        self._clock = clock

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        thread = None if place.thread is None else await self._root(place)
        kind, payload = encode(message)
        message_id = await self._messages.append(place.channel, thread, kind, payload, intent, self._clock.now())
        self._live.notify()
        return MessageReference(place, str(message_id))

    async def edit(self, reference: MessageReference, message: Message) -> None:
        kind, payload = encode(message)
        await self._messages.replace(_number(reference.message_id), kind, payload)
        self._live.notify()

    async def delete(self, reference: MessageReference) -> None:
        """Replace the message with a note that it was deleted, because open pages would not notice its removal."""
        with suppress(MessageNotFound):
            await self.edit(reference, Notice(DELETED))

    async def link(self, reference: MessageReference) -> str:
        """Return an empty address: the page itself links to the incident of a message."""
        return ""

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        message = await self._messages.find(intent)
        return None if message is None else MessageReference(place, str(message.id))

    async def _root(self, place: Place) -> int:
        message = await self._messages.get(_number(place.thread or ""))
        if message is None or message.channel != place.channel:
            raise _missing(place.thread)
        return message.root


def _number(message_id: str) -> int:
    if not (message_id.isascii() and message_id.isdigit() and len(message_id) <= 18):
        raise _missing(message_id)
    return int(message_id)


def _missing(message_id: str | None) -> MessageNotFound:
    return MessageNotFound(f"The local page has no message {message_id}: it was deleted, or never posted here.")
