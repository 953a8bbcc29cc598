"""Post a message once, and keep it in line with what it shows.

Every post is recorded before and after it is made. A process that was killed in between asks the platform whether the
message stands there already, so that it is not posted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatBusy, ConfigurationError, MessageNotFound, Undeliverable, Withdrawn
from core.model.messages import Message, claim
from core.ports import Messenger, SignallingMessenger, Store

UNKNOWN_VERSION = ""
NEVER = (Undeliverable, ConfigurationError, MessageNotFound)  # it helps nothing to post again until somebody acts


def keeps_nothing(_shown: str, _version: str) -> bool:
    """Whatever is shown is replaced by what is newer."""
    return False


class Poster:
    """Posts on whatever platform a place belongs to, each intent once."""

    def __init__(self, store: Store, messengers: Mapping[Platform, Messenger]) -> None:
        self._store = store
        self._messengers = messengers

    def one_at_a_time(self, intent: str) -> AbstractAsyncContextManager[None]:
        """Serialises the writers of one message; what is shown must be read inside, or an older state could win."""
        return self._store.lock(f"show {intent}")

    async def post_once(
        self, intent: str, place: Place, message: Message, version: str = "", *, again: bool = False
    ) -> MessageReference:
        """Post the message unless it was posted for this intent before. `version` names the content that it shows.

        Raises Withdrawn if it must not stand there any more, Undeliverable if the chat does not take it: it is then a
        dead letter, and not tried until an operator wants it tried `again`. The letter is left to whoever tries it.
        """
        async with self._store.lock(f"post {intent}"):  # who comes second finds it posted, in whatever process
            return (await self._posted(intent, place, message, version, again=again))[0]

    async def _posted(
        self, intent: str, place: Place, message: Message, version: str, *, again: bool
    ) -> tuple[MessageReference, str]:
        """The message, and the version of its content that it shows."""
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
            await self.withdraw(intent, place)  # in case it was on its way then, and could not be taken away
            raise Withdrawn(f"What {intent} answers was deleted.")
        found = await messenger.find(place, intent) if post.attempted else None
        reference = found or await self._post(intent, place, message)
        shown = UNKNOWN_VERSION if found else version  # what was found may show an older content than this one
        async with self._store.transaction() as transaction:
            may_stand = await transaction.posts.posted(intent, reference, shown, claim(message))
        if not may_stand:
            await self.withdraw(intent, place)
            raise Withdrawn(f"What {intent} answers was deleted.")
        return reference, shown

    async def post_or_edit(
        self,
        intent: str,
        place: Place,
        message: Message,
        version: str,
        *,
        again: bool = False,
        keeps: Callable[[str, str], bool] = keeps_nothing,
    ) -> MessageReference:
        """Post the message, or edit it if it stands there with another version of its content, unless that one `keeps`.

        If somebody deleted it, it is posted anew: what is told by editing would be told to nobody.
        A dead letter is tried `again` as by `post_once`.
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

    async def stands(self, intent: str, place: Place) -> bool:
        """Return whether it was posted."""
        async with self._store.transaction() as transaction:
            return (await transaction.posts.intend(intent, place)).reference is not None

    async def link(self, reference: MessageReference) -> str:
        """The address of a message for people who may read it; empty where none is known."""
        return await self._messenger(reference.place).link(reference)

    async def _post(self, intent: str, place: Place, message: Message) -> MessageReference:
        """Post a message that does not stand there yet; what was surely not taken need not be looked for next time."""
        try:
            return await self._messenger(place).post(place, message, intent)
        except ChatBusy:
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
            raise
        except NEVER as error:
            if isinstance(error, MessageNotFound) and place.thread is not None:
                raise  # somebody deleted the thread, and with it whoever would read this
            async with self._store.transaction() as transaction:
                await transaction.posts.forget(intent)
                await transaction.dead_letters.add(intent, place, message, str(error))
            raise Undeliverable(str(error)) from error

    async def signal(self, place: Place, text: str) -> bool:
        """Show that somebody is waited for without a message; False where the platform cannot. Raises ChatUnavailable."""
        messenger = self._messenger(place)
        return isinstance(messenger, SignallingMessenger) and await messenger.signal(place, text)

    async def withdraw(self, intent: str, place: Place) -> None:
        """Take a message away if it stands there, and let nobody post it any more."""
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
