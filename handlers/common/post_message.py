"""Post each message once, and keep it up to date.

Every post is recorded before and after it is made. After a crash in between, the platform is searched for the message,
so that it is not posted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatBusy, ConfigurationError, MessageNotFound, Undeliverable, Withdrawn
from core.model.messages import Message, claim
from core.ports import Messenger, SignallingMessenger, Store

UNKNOWN_VERSION = ""
NEVER = (Undeliverable, ConfigurationError, MessageNotFound)  # retrying does not help until somebody acts


class Poster:
    """Posts messages on the platform of their place, each intent once."""

    def __init__(self, store: Store, messengers: Mapping[Platform, Messenger]) -> None:
        self._store = store
        self._messengers = messengers

    def one_at_a_time(self, intent: str) -> AbstractAsyncContextManager[None]:
        """Return the lock that serialises writers of one message.

        Read the content inside it, so that no older state wins.
        """
        return self._store.lock(f"show {intent}")

    async def post_once(
        self, intent: str, place: Place, message: Message, version: str = "", *, again: bool = False
    ) -> MessageReference:
        """Post the message, unless this intent was posted before. `version` identifies the content.

        Raises Withdrawn if the message must no longer be shown, and Undeliverable if the chat refuses it. A refused
        message becomes a dead letter, and is retried only with `again`; the caller then removes the dead letter.
        """
        # The second of two writers, in any process, finds the message posted.
        async with self._store.lock(f"post {intent}"):
            return (await self._posted(intent, place, message, version, again=again))[0]

    async def _posted(
        self, intent: str, place: Place, message: Message, version: str, *, again: bool
    ) -> tuple[MessageReference, str]:
        """Return the message and the version of the content that it shows."""
        messenger = self._messenger(place)
        async with self._store.transaction() as transaction:
            post = await transaction.posts.intend(intent, place)
            if post.reference is not None and not post.withdrawn:
                return post.reference, post.content_hash
            if not again and (letter := await transaction.dead_letters.get(intent)) is not None:
                raise Undeliverable(letter.reason)
            if not post.withdrawn:
                await transaction.posts.attempted(intent)
        if post.withdrawn:
            await self.withdraw(intent, place)  # in case it was being posted when it was withdrawn
            raise Withdrawn(f"The question that {intent} answers was deleted.")
        earlier = await messenger.find(place, intent) if post.attempted else None
        reference = earlier or await self._post(intent, place, message)
        shown = UNKNOWN_VERSION if earlier else version  # a message that was found may show older content
        async with self._store.transaction() as transaction:
            may_stand = await transaction.posts.posted(intent, reference, shown, claim(message))
        if not may_stand:
            await self.withdraw(intent, place)
            raise Withdrawn(f"The question that {intent} answers was deleted.")
        return reference, shown

    async def post_or_edit(
        self,
        intent: str,
        place: Place,
        message: Message,
        version: str,
        *,
        again: bool = False,
        keeps: Callable[[str, str], bool] = lambda _shown, _version: False,
    ) -> MessageReference:
        """Post the message, or edit it if it shows another version, unless `keeps(shown, version)` is true.

        A message that somebody deleted is posted again, because an edit would be lost. `again` retries a dead letter,
        as in `post_once`.
        """
        async with self._store.lock(f"post {intent}"):
            reference, shown = await self._posted(intent, place, message, version, again=again)
        if shown == version or keeps(shown, version):
            return reference
        try:
            await self._messenger(place).edit(reference, message)
        except MessageNotFound:
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
            return await self.post_once(intent, place, message, version, again=again)
        except NEVER as error:
            async with self._store.transaction() as transaction:
                await transaction.dead_letters.add(intent, place, message, str(error))
            raise Undeliverable(str(error)) from error
        async with self._store.transaction() as transaction:
            await transaction.posts.edited(intent, version, claim(message))
        return reference

    async def is_posted(self, intent: str, place: Place) -> bool:
        """Return whether the message was posted."""
        async with self._store.transaction() as transaction:
            return (await transaction.posts.intend(intent, place)).reference is not None

    async def link(self, reference: MessageReference) -> str:
        """Return the address of a message for people who may read it; empty if unknown."""
        return await self._messenger(reference.place).link(reference)

    async def _post(self, intent: str, place: Place, message: Message) -> MessageReference:
        """Post a new message. A certain refusal is recorded, so that the platform is not searched for it next time."""
        try:
            return await self._messenger(place).post(place, message, intent)
        except ChatBusy:
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
            raise
        except NEVER as error:
            if isinstance(error, MessageNotFound) and place.thread is not None:
                raise  # the thread was deleted, and with it the readers of this reply
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
                await transaction.dead_letters.add(intent, place, message, str(error))
            raise Undeliverable(str(error)) from error

    async def signal(self, place: Place, text: str) -> float:
        """Show a waiting indicator without a message, as `SignallingMessenger` does; 0.0 if the platform has none."""
        messenger = self._messenger(place)
        return await messenger.signal(place, text) if isinstance(messenger, SignallingMessenger) else 0.0

    async def withdraw(self, intent: str, place: Place) -> None:
        """Delete the message if it exists, and prevent it from being posted later."""
        async with self._store.transaction() as transaction:
            post = await transaction.posts.withdraw(intent, place)
        messenger = self._messenger(place)
        reference = post.reference or (await messenger.find(place, intent) if post.attempted else None)
        if reference is not None:
            await messenger.delete(reference)

    def _messenger(self, place: Place) -> Messenger:
        messenger = self._messengers.get(place.platform)
        if messenger is None:
            raise ConfigurationError(f"A message is meant for {place.platform}, which is not configured here.")
        return messenger
