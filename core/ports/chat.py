"""The chats: what is said there, and what people do there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, runtime_checkable

from core.model.conversation import Audience, MessageReference, Place, Question, Turn
from core.model.feedback import Feedback, Reaction
from core.model.messages import Form, Message, Verdict
from core.model.pace import Pace


class Messenger(Protocol):
    """Speaks on one chat platform.

    Raises ChatUnavailable when the platform does not answer, ChatBusy when it asks to wait and took nothing,
    MessageNotFound when the message to edit or to reply to is gone, Undeliverable when it will never take a message.
    """

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        """Post a message. `intent` names this very post, so that `find` finds it after a crash."""
        ...

    async def edit(self, reference: MessageReference, message: Message) -> None:
        """Replace the content of a message that was posted."""
        ...

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        """The message that was posted for this intent; None if there is none or the platform cannot tell."""
        ...

    async def delete(self, reference: MessageReference) -> None:
        """Take a message that was posted away again; one that is gone already is left at that."""
        ...

    async def link(self, reference: MessageReference) -> str:
        """The address of a message for people who may read it; empty where none is known. Does not raise."""
        ...


@runtime_checkable
class SignallingMessenger(Protocol):
    """A messenger whose platform can show that somebody is waited for, other than by a message."""

    async def signal(self, place: Place, text: str) -> bool:
        """Show this line until the next post in the thread; False if the platform has no such sign there.

        Raises ChatUnavailable.
        """
        ...


class Pacer(Protocol):
    """Turns to write in a channel, for all who write there in our name. Does not raise.

    A `lane` names the channel, and what is done there if that has a pace of its own. A `ticket` names what is written.
    """

    async def take(self, lane: str, ticket: str, pace: Pace) -> float:
        """0.0 if it is this ticket's turn, which is taken; else the seconds until it comes, which is kept for it.

        It is the same however often it is asked for, and is lost if nobody takes it for `core.model.pace.LATE`.
        """
        ...

    async def answered(self, lane: str, pace: Pace) -> None:
        """The platform has taken what was written in a turn, or refused it: the next one is `pace.interval` from now."""
        ...

    async def rest(self, lane: str, seconds: float, pace: Pace) -> None:
        """The platform asks to wait: nobody has a turn for so long, and the order stays."""
        ...


class ThreadReader(Protocol):
    """Reads on one chat platform what people said to each other. Untrusted."""

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        """Return the turns of the thread at `place` before that time, oldest first; empty outside a thread.

        Of more than `limit` (at least 2) messages, the one that began the thread and the latest ones. A thread that is
        gone is empty. Raises ChatUnavailable.
        """
        ...


class Inbox(Protocol):
    """The inbox to which the inbound adapters hand what people do in a chat.

    Each call returns as soon as the event is durably recorded (milliseconds), so that the chat can be acknowledged;
    the work happens afterwards. An event whose key was handed in before is dropped.
    """

    async def ask(self, question: Question) -> None:
        """A mention, a direct message or a slash command, or such a message that was edited (see `Question.revision`).

        The text is what follows the bot's name.
        """
        ...

    async def overhear(self, remark: Question, name: Callable[[], Awaitable[str]]) -> None:
        """Take what somebody said in a thread to others, if the thread is that of an open incident and it bears on its cause.

        Of anything else nothing is kept. `name` finds out what people call the speaker, where it is needed.
        """
        ...

    async def press(self, feedback: Feedback) -> None:
        """A pressed button."""
        ...

    async def react(self, reaction: Reaction) -> None:
        """A reaction to a message that may be one of ours."""
        ...

    async def retract(self, question_id: str, place: Place, *, edited: bool = False) -> None:
        """A message was deleted that may have been a question; `question_id` is the id that it had or would have had.

        With `edited` it stands there, and means somebody else: if it was never asked, it may yet be, and nothing is kept.
        """
        ...


class Standing(Protocol):
    """The current content of a message of ours, for platforms that ask for it again."""

    async def message(self, reference: MessageReference) -> Message | None:
        """As it would be shown now, within milliseconds; None for one that nothing can change any more.

        Of the reference, the platform, the channel and the message's id matter. Raises StoreUnavailable.
        """
        ...


class Forms(Protocol):
    """The forms for a press that leaves a question open, for platforms that can show a form."""

    async def form(self, verdict: Verdict, subject: str, audience: Audience) -> Form | None:
        """The form for a press of this button, within milliseconds; None if nothing is to be asked.

        It says nothing that the audience of the message may not read.

        Raises StoreUnavailable.
        """
        ...
