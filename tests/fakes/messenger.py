"""A chat that remembers what was said in it, and that can fail in every way that a real one can."""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from core.model.conversation import MessageReference, Place
from core.model.errors import ChatUnavailable, MessageNotFound
from core.model.messages import Message


class Crash(BaseException):
    """The process is killed here."""


class Trouble(StrEnum):
    """What happens to the next call."""

    DOWN = "the platform does not answer"
    ANSWER_LOST = "the platform does what it is asked for, and its answer does not arrive"
    CRASH_BEFORE = "the process is killed before it asks"
    CRASH_AFTER = "the platform does what it is asked for, and the process is killed"


class RecordingMessenger:
    """Implements `core.ports.Messenger`. A platform that is `forgetful` cannot tell what was posted for an intent."""

    def __init__(self, *, forgetful: bool = False) -> None:
        self.posted: list[tuple[Place, Message]] = []  # every post that the platform took, in order
        self.edited: list[tuple[MessageReference, Message]] = []  # every edit that the platform took, in order
        self.standing: dict[MessageReference, Message] = {}  # what people see now
        self.trouble: deque[Trouble] = deque()  # of the next calls of `post` and `edit`
        self.retry_after: float | None = None  # seconds that a platform which is down asks to wait
        self.forgetful = forgetful
        self._intents: dict[tuple[Place, str], MessageReference] = {}

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        trouble = self._before()
        reference = MessageReference(place, str(len(self.posted) + 1))
        self.posted.append((place, message))
        self.standing[reference] = message
        self._intents[place, intent] = reference
        self._after(trouble)
        return reference

    async def edit(self, reference: MessageReference, message: Message) -> None:
        trouble = self._before()
        if reference not in self.standing:
            raise MessageNotFound("The message is gone.")
        self.edited.append((reference, message))
        self.standing[reference] = message
        self._after(trouble)

    async def delete(self, reference: MessageReference) -> None:
        trouble = self._before()
        self.standing.pop(reference, None)
        self._after(trouble)

    async def link(self, reference: MessageReference) -> str:
        return f"https://chat.example/{reference.message_id}"

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        return None if self.forgetful else self._intents.get((place, intent))

    def _before(self) -> Trouble | None:
        trouble = self.trouble.popleft() if self.trouble else None
        if trouble is Trouble.CRASH_BEFORE:
            raise Crash
        if trouble is Trouble.DOWN:
            raise ChatUnavailable("The chat is down.", self.retry_after)
        return trouble

    def _after(self, trouble: Trouble | None) -> None:
        if trouble is Trouble.CRASH_AFTER:
            raise Crash
        if trouble is Trouble.ANSWER_LOST:
            raise ChatUnavailable("The chat did not answer.")
